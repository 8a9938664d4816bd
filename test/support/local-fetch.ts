/**
 * Loaded into the programs of the documentation (`--require`): requests to any server are answered with the file of
 * that name in the current folder, or with model.gguf, by ranges. So they run as printed, without a network.
 */
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const name = basename(new URL(request.url).pathname);
  const bytes = readFileSync(existsSync(name) ? name : "model.gguf");
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
  if (range === null) return new Response(bytes, { headers: { etag: '"1"' } });
  const [first, last] = [Number(range[1]), Math.min(Number(range[2]), bytes.length - 1)];
  const headers = { etag: '"1"', "content-range": `bytes ${first}-${last}/${bytes.length}` };
  return new Response(bytes.subarray(first, last + 1), { status: 206, headers });
};

// A registry of npm packages with a single one, for programs that install from registries only. A thread of its own, since
// the thread that starts those programs waits for them.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** Serves a tarball, whose package.json is `manifest`; returns the registry's address and what stops it. */
export async function serveRegistry(tarball, manifest) {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { tarball, manifest } });
  const [address] = await once(worker, "message");
  return { address, stop: () => worker.terminate() };
}

function serve({ tarball, manifest }) {
  const bytes = readFileSync(tarball);
  const digest = (algorithm, encoding) => createHash(algorithm).update(bytes).digest(encoding);
  const server = createServer((request, response) => {
    if (request.url === `/${basename(tarball)}`) return response.end(bytes);
    if (request.url !== `/${manifest.name}`) return response.writeHead(404).end();
    const dist = {
      tarball: `http://${request.headers.host}/${basename(tarball)}`,
      integrity: `sha512-${digest("sha512", "base64")}`,
      shasum: digest("sha1", "hex"),
    };
    const { name, version } = manifest;
    const versions = { [version]: { ...manifest, dist } };
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(`http://127.0.0.1:${server.address().port}/`));
}

if (!isMainThread && workerData?.tarball !== undefined) serve(workerData);

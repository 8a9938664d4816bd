// A registry of a few npm packages, for programs that install from registries only. A thread of its own, since the thread
// that starts those programs waits for them.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** Serves packages, each a tarball and the package.json in it; returns the registry's address and what stops it. */
export async function serveRegistry(packages) {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { packages } });
  const [address] = await once(worker, "message");
  return { address, stop: () => worker.terminate() };
}

function serve(packages) {
  const server = createServer((request, response) => {
    const wanted = packages.find(({ tarball }) => request.url === `/${basename(tarball)}`);
    if (wanted) return response.end(readFileSync(wanted.tarball));
    const described = packages.find(({ manifest }) => request.url === `/${manifest.name}`);
    if (!described) return response.writeHead(404).end();
    const { tarball, manifest } = described;
    const digest = (algorithm, encoding) => createHash(algorithm).update(readFileSync(tarball)).digest(encoding);
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

if (!isMainThread && workerData?.packages !== undefined) serve(workerData.packages);

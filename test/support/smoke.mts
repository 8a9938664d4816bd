/**
 * One program for every runtime and package manager: uses the package from end to end, and prints a hash of what each
 * step gave. It needs nothing but the package, so a copy of the compiled file runs in any project; two runs of it print
 * the same on one machine, whatever runs them.
 *
 *     node smoke.mjs          prints "STEP HASH" lines, and "done" at the end
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import {
  allocate,
  cpu,
  dequantize,
  dequantizeSync,
  type GgmlType,
  type GgufFile,
  GgufWriter,
  ggmlTypes,
  matmulSync,
  mergeModel,
  open,
  openRemote,
  openSync,
  parse,
  parseFileName,
  type RemoteGgufFile,
  setMetadata,
  splitModel,
  trim,
} from "gguf-native";
import * as reference from "gguf-native/reference";

const COLUMNS = 512;
const ROWS = 64;
const TYPES = Object.keys(ggmlTypes) as GgmlType[];
const MATRICES: readonly GgmlType[] = ["F32", "F16", "BF16", "Q4_0", "Q8_0", "Q2_K", "Q4_K", "Q6_K", "IQ4_XS"];
const WORKERS = 6;
const TERMINATED_WORKERS = 12;

type Part = string | ArrayBufferView;

function hash(...parts: Part[]): string {
  const sha = createHash("sha256");
  for (const part of parts) {
    sha.update(typeof part === "string" ? part : new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  return sha.digest("hex").slice(0, 32);
}

function step(name: string, ...parts: Part[]): void {
  console.log(`${name.padEnd(24)} ${hash(...parts)}`);
}

/** The same bytes in every run. Their scales are small, so that no number is NaN, whose bits are not the same everywhere. */
function blocksOf(type: GgmlType, elements: number): Uint8Array {
  const { blockSize, typeSize } = ggmlTypes[type];
  const bytes = new Uint8Array((elements / blockSize) * typeSize);
  let state = ggmlTypes[type].id + 1;
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    bytes[i] = (state >>> 24) & 0x3f;
  }
  return bytes;
}

const vectors = Float32Array.from({ length: 3 * COLUMNS }, (_, i) => Math.fround(Math.sin(i)));

async function write(path: string): Promise<void> {
  const writer = new GgufWriter({ alignment: 64 })
    .set("general.architecture", "llama")
    .set("general.name", "Smoke")
    .set("llama.context_length", 4096)
    .set("mine.scale", 0.5, "float64")
    .set("mine.big", 2n ** 60n, "uint64")
    .set("mine.numbers", [1, -2, 3], "int32[]")
    .set("tokenizer.ggml.tokens", ["<s>", "a", "ä", "猫"]);
  for (const type of TYPES) writer.addTensor(type, type, [COLUMNS, ROWS], blocksOf(type, COLUMNS * ROWS));
  await writer.write(path);
}

async function readLocally(path: string): Promise<void> {
  const file = openSync(path);
  step("metadata", JSON.stringify(file.metadata), String(file.metadata.get("mine.big")));
  step("tensors", JSON.stringify(Array.from(file.tensors, ([name, { type, shape }]) => [name, type, shape])));
  for (const [type, tensor] of file.tensors) {
    const values = tensor.dequantizeSync();
    const again = reference.dequantizeSync(type as GgmlType, tensor.bytes());
    if (hash(values) !== hash(again)) throw new Error(`${type}: the reference has another result`);
    step(type, values, tensor.dequantizeSync({ dtype: "f16" }), await tensor.dequantize({ dtype: "bf16" }));
  }
  const embeddings = file.tensor("Q6_K");
  step("rows", embeddings.rowsSync([5, 0, 63, 5]), await embeddings.rows([1, 2]));
  for (const type of MATRICES) {
    const tensor = file.tensor(type);
    const products = tensor.matmulSync(vectors);
    const again = [await tensor.matmul(vectors), matmulSync(type, tensor.bytes(), COLUMNS, vectors)];
    again.push(reference.matmulSync(type, tensor.bytes(), COLUMNS, vectors));
    if (again.some((other) => hash(other) !== hash(products))) throw new Error(`${type}: products differ`);
    step(`${type} products`, products);
  }
  step("read", await embeddings.read({ start: 256, end: 1024 }), embeddings.bytes());
  const progress: number[] = [];
  const out = allocate(COLUMNS * ROWS);
  const filled = await embeddings.dequantize({
    out,
    onProgress: (done, total) => progress.push(done / total),
  });
  if (filled !== out || progress.at(-1) !== 1) throw new Error("no progress");
  const shared = new Float32Array(new SharedArrayBuffer(4 * COLUMNS * ROWS));
  step("outputs", out, (await embeddings.dequantize({ out: shared })).slice());
  const blocks = file.tensor("Q4_0").bytes();
  step("blocks", dequantizeSync("Q4_0", blocks), await dequantize("Q4_0", blocks, { start: 32, end: 96 }));
  const view = embeddings.bytes();
  file.close();
  if (view.length !== 0) throw new Error("the view outlived its file");
  const byRead = await open(path, { access: "read" });
  step("ordinary reads", byRead.tensor("Q4_K").dequantizeSync());
  byRead.close();
  step("memory", parse(readFileSync(path)).tensor("Q4_K").dequantizeSync());
  trim();
}

async function errors(path: string): Promise<void> {
  const file = openSync(path);
  const found: string[] = [];
  const note = (error: unknown) => {
    const { name, code, message } = error as Error & { code?: string };
    found.push(`${name} ${code} ${message.replaceAll(path, "PATH")}`);
  };
  const attempts: (() => unknown)[] = [
    () => openSync(`${path}.absent`),
    () => openSync(5 as never),
    () => parse(new Uint8Array(64)),
    () => file.tensor("nowhere"),
    () => file.tensor("Q4_K").dequantizeSync({ start: 1 }),
    () => file.tensor("Q4_K").dequantize({ signal: AbortSignal.abort(new Error("enough")) }),
  ];
  for (const attempt of attempts) {
    try {
      await attempt();
      found.push("no error");
    } catch (error) {
      note(error);
    }
  }
  file.close();
  step("errors", found.join("\n"));
}

async function change(folder: string, path: string): Promise<void> {
  await setMetadata(path, { "general.name": "Changed", "mine.scale": undefined });
  step("changed", readFileSync(path));
  const parts = await splitModel(path, join(folder, "part"), { maxTensors: 12 });
  step("split", ...parts.map((part) => readFileSync(part)));
  const shard = parseFileName(parts[0] as string)?.shard;
  if (shard?.count !== parts.length) throw new Error("the names of the parts are wrong");
  const model = await open(parts[1] as string);
  step("opened as one", model.tensor("Q2_K").dequantizeSync(), model.tensor("Q2_0").dequantizeSync());
  model.close();
  await mergeModel(parts[0] as string, join(folder, "merged.gguf"));
  step("merged", readFileSync(join(folder, "merged.gguf")));
}

/** Serves a file by ranges, as servers of models do. */
async function remote(path: string): Promise<void> {
  const content = readFileSync(path);
  const server = createServer((request, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const begin = Number(first);
    const end = Math.min(Number(last) + 1, content.length);
    response.writeHead(206, {
      "content-range": `bytes ${begin}-${end - 1}/${content.length}`,
      "content-length": end - begin,
      etag: '"1"',
    });
    response.end(content.subarray(begin, end));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const file: GgufFile | RemoteGgufFile = await openRemote(`http://127.0.0.1:${port}/smoke.gguf`);
    step("remote metadata", JSON.stringify(file.metadata));
    const tensor = file.tensor("Q5_K");
    step("remote", await tensor.dequantize(), await tensor.rows([3, 60, 4]), await tensor.read({ end: 512 }));
    file.close();
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** What a worker does: hashes a tensor and posts that, or works until it is terminated. */
async function work({ path, type, endless }: { path: string; type: GgmlType; endless: boolean }): Promise<void> {
  const file = openSync(path);
  const tensor = file.tensor(type);
  parentPort?.postMessage(hash(tensor.dequantizeSync(), await tensor.dequantize(), await tensor.matmul(vectors)));
  while (endless) await Promise.all([tensor.dequantize(), tensor.rows([1, 2, 3]), tensor.matmul(vectors)]);
  file.close();
}

function startWorker(path: string, type: GgmlType, endless: boolean) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { path, type, endless } });
  const message = new Promise<string>((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
  });
  const exit = new Promise((resolve) => worker.once("exit", resolve));
  return { worker, message, exit };
}

async function workers(path: string): Promise<void> {
  // Node 20 sometimes aborts when a worker ends whose code another thread is just optimizing.
  if (process.versions.node.startsWith("20.")) setFlagsFromString("--no-concurrent-recompilation");
  const types = Array.from({ length: WORKERS }, (_, i) => MATRICES[i % MATRICES.length] as GgmlType);
  const started = types.map((type) => startWorker(path, type, false));
  step("workers", ...(await Promise.all(started.map(({ message }) => message))));
  await Promise.all(started.map(({ exit }) => exit));
  for (let i = 0; i < TERMINATED_WORKERS; i += 3) {
    const three = [0, 1, 2].map((n) => startWorker(path, MATRICES[(i + n) % 9] as GgmlType, true));
    await Promise.all(three.map(({ message }) => message));
    await Promise.all(three.map(({ worker }) => worker.terminate()));
  }
  const file = openSync(path);
  step("after workers", file.tensor("Q4_K").dequantizeSync());
  file.close();
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gguf-native-smoke-"));
  try {
    const path = join(folder, "smoke.gguf");
    step("cpu", JSON.stringify(cpu()));
    await write(path);
    step("written", readFileSync(path));
    await readLocally(path);
    await errors(path);
    await remote(path);
    await workers(path);
    await change(folder, path);
    step("left behind", JSON.stringify(readdirSync(folder).sort()));
    console.log("done");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await (isMainThread ? main() : work(workerData));

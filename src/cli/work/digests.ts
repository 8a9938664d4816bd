/**
 * The SHA-256 of the stored bytes of tensors. Node has it in this thread only, so models on this machine are spread over
 * all cores by worker threads, each of which maps them for itself. Of models on servers several tensors are fetched at a
 * time, and hashed in this thread, which is faster than most networks.
 */
import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import { PART_ELEMENTS, partsOf } from "../../file/parts";
import { cpu, type GgmlType, type GgufModelTensor, type GgufTensor, ggmlTypes } from "../../index";
import { forEachConcurrently } from "../../source/concurrent";
import type { LocalModel, OpenedModel } from "../arguments/open-model";
import type { Progress } from "../output/progress";
import { FETCHED_TENSORS } from "./look-at-values";

/** Fewer bytes than these are hashed in this thread: starting others would take longer. */
const WORTH_THREADS = 2 ** 26;

/** What a worker thread says about the tensor whose name it was sent: bytes that were hashed; then the digest, or an error. */
export type Answer =
  | { bytes: number }
  | { digest: string }
  | { error: { message: string; code: string | undefined } };

/** Told of so many more bytes. */
type OnBytes = (bytes: number) => void;

/**
 * The digests of tensors of one model, in hexadecimal and in their order.
 * @throws what reading throws, with its `message` and `code`
 */
export async function digestsOf(
  model: OpenedModel,
  tensors: readonly GgufModelTensor[],
  progress: Progress,
): Promise<string[]> {
  const onBytes = (bytes: number): void => progress.advance(bytes);
  if (model.local === undefined) return digestsOfFetched(tensors, onBytes);
  const total = tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const threads = total < WORTH_THREADS ? 1 : Math.min(cpu().threads, tensors.length);
  if (threads > 1) return digestsByThreads(model.local, threads, tensors, onBytes);
  return tensors.map((tensor) => digestOfMapped(tensor as GgufTensor, onBytes));
}

/** The digest of a tensor that this thread maps. */
export function digestOfMapped(tensor: GgufTensor, onBytes: OnBytes): string {
  const { blockSize, typeSize } = ggmlTypes[tensor.type as GgmlType];
  const pieceBytes = (PART_ELEMENTS / blockSize) * typeSize;
  const hash = createHash("sha256");
  for (let at = 0; at < tensor.byteLength; at += pieceBytes) {
    // Asked for each time: this fails where the file has been cut off meanwhile.
    const piece = tensor.bytes().subarray(at, at + pieceBytes);
    hash.update(piece);
    onBytes(piece.length);
  }
  return hash.digest("hex");
}

async function digestsOfFetched(tensors: readonly GgufModelTensor[], onBytes: OnBytes): Promise<string[]> {
  const digests = new Array<string>(tensors.length);
  await forEachConcurrently(
    tensors.entries(),
    FETCHED_TENSORS,
    undefined,
    async ([index, tensor], signal) => {
      const hash = createHash("sha256");
      for (const part of partsOf(0, tensor.elementCount)) {
        const piece = await tensor.read({ ...part, signal });
        hash.update(piece);
        onBytes(piece.length);
      }
      digests[index] = hash.digest("hex");
    },
  );
  return digests;
}

async function digestsByThreads(
  workerData: LocalModel,
  threads: number,
  tensors: readonly GgufModelTensor[],
  onBytes: OnBytes,
): Promise<string[]> {
  const digests = new Array<string>(tensors.length);
  const queue = tensors.entries();
  const workers = Array.from({ length: threads }, () => new Worker(`${__dirname}/worker.js`, { workerData }));
  try {
    await Promise.all(workers.map(runQueue));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  return digests;

  /** Gives a worker tensors until none is left. */
  function runQueue(worker: Worker): Promise<void> {
    return new Promise((resolve, reject) => {
      let current: number;
      const next = (): void => {
        const { done, value } = queue.next();
        if (done) {
          resolve();
          return;
        }
        current = value[0];
        worker.postMessage(value[1].name);
      };
      worker.on("message", (answer: Answer) => {
        if ("error" in answer) {
          const { message, code } = answer.error;
          return reject(Object.assign(new Error(message), { code }));
        }
        if ("bytes" in answer) return onBytes(answer.bytes);
        digests[current] = answer.digest;
        next();
      });
      worker.on("error", reject);
      worker.on("exit", () => reject(new Error("a worker thread ended early")));
      next();
    });
  }
}

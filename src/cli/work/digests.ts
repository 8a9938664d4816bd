/**
 * The SHA-256 of the stored bytes of tensors. Node has it in this thread only, so models on this machine are spread over
 * all cores by worker threads, each of which maps them for itself. Of models on servers several tensors are fetched at a
 * time, and hashed in this thread, which is faster than most networks.
 */
import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import { PART_ELEMENTS, partsOf } from "../../base/ranges";
import { copyBytes } from "../../file/tensor";
import { cpu, type GgmlType, type GgufModelTensor, type GgufTensor, ggmlTypes } from "../../index";
import { forEachConcurrently } from "../../source/concurrent";
import type { LocalModel, OpenedModel } from "../arguments/open-model";
import type { Progress } from "../output/progress";
import { FETCHED_TENSORS } from "./look-at-values";

/** Fewer bytes than these are hashed in this thread: starting others would take longer. */
const WORTH_THREADS = 2 ** 26;

/** Other threads hash no tensors of fewer bytes. */
const LARGE_BYTES = 2 ** 20;

/** What a worker thread says about the tensor whose name it was sent: bytes that were hashed; then the digest, or an error. */
export type Answer = { bytes: number } | { digest: string } | { error: { message: string; code: string | undefined } };

/** Told of so many more bytes. */
type OnBytes = (bytes: number) => void;

/** A tensor with its number. */
type Numbered = readonly [index: number, tensor: GgufModelTensor];

/** Told of the digest of a tensor. */
type OnDigest = (index: number, digest: Buffer) => void;

/**
 * The digests of tensors of one model, which are gone through more than once.
 * @param onDigest called with each, in no order
 * @throws what reading throws, with its `message` and `code`
 */
export async function digestsOf(
  model: OpenedModel,
  tensors: Iterable<Numbered>,
  progress: Progress,
  onDigest: OnDigest,
): Promise<void> {
  const onBytes = (bytes: number): void => progress.advance(bytes);
  if (model.local === undefined) return digestsOfFetched(tensors, onBytes, onDigest);
  const large = largeTensors(tensors);
  if (large.length > 0) await digestsByThreads(model.local, large, onBytes, onDigest);
  const isHashed = (tensor: GgufModelTensor): boolean => large.length > 0 && tensor.byteLength >= LARGE_BYTES;
  for (const [index, tensor] of tensors) {
    if (!isHashed(tensor)) onDigest(index, digestOfMapped(tensor as GgufTensor, onBytes));
  }
}

/**
 * What is worth to be hashed by several threads, the largest first, so that no thread is left with a large one when the
 * others are done.
 */
function largeTensors(tensors: Iterable<Numbered>): Numbered[] {
  const large: Numbered[] = [];
  let total = 0;
  for (const numbered of tensors) {
    if (numbered[1].byteLength < LARGE_BYTES) continue;
    large.push(numbered);
    total += numbered[1].byteLength;
  }
  if (total < WORTH_THREADS || large.length === 1 || cpu().threads === 1) return [];
  return large.sort(([, a], [, b]) => b.byteLength - a.byteLength);
}

let scratch: Buffer | undefined;

/** The digest of a tensor that this thread maps. */
export function digestOfMapped(tensor: GgufTensor, onBytes: OnBytes): Buffer {
  const { blockSize, typeSize } = ggmlTypes[tensor.type as GgmlType];
  const pieceBytes = (PART_ELEMENTS / blockSize) * typeSize;
  const hash = createHash("sha256");
  // A view of each of a million tensors would be memory of its own.
  const isSmall = tensor.byteLength < LARGE_BYTES;
  for (let at = 0; at < tensor.byteLength; at += pieceBytes) {
    if (isSmall) {
      scratch ??= Buffer.allocUnsafeSlow(LARGE_BYTES);
      const piece = scratch.subarray(0, Math.min(pieceBytes, tensor.byteLength - at));
      copyBytes(tensor, at, piece);
      hash.update(piece);
      onBytes(piece.length);
      continue;
    }
    // Asked for each time: this fails where the file has been cut off meanwhile.
    const piece = tensor.bytes().subarray(at, at + pieceBytes);
    hash.update(piece);
    onBytes(piece.length);
  }
  return hash.digest();
}

async function digestsOfFetched(tensors: Iterable<Numbered>, onBytes: OnBytes, onDigest: OnDigest): Promise<void> {
  await forEachConcurrently(tensors, FETCHED_TENSORS, undefined, async ([index, tensor], signal) => {
    const hash = createHash("sha256");
    for (const part of partsOf(0, tensor.elementCount)) {
      const piece = await tensor.read({ ...part, signal });
      hash.update(piece);
      onBytes(piece.length);
    }
    onDigest(index, hash.digest());
  });
}

async function digestsByThreads(
  workerData: LocalModel,
  tensors: readonly Numbered[],
  onBytes: OnBytes,
  onDigest: OnDigest,
): Promise<void> {
  const threads = Math.min(cpu().threads, tensors.length);
  const queue = tensors.values();
  const workers = Array.from({ length: threads }, () => new Worker(`${__dirname}/worker.js`, { workerData }));
  try {
    await Promise.all(workers.map(runQueue));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

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
        onDigest(current, Buffer.from(answer.digest, "hex"));
        next();
      });
      worker.on("error", reject);
      worker.on("exit", () => reject(new Error("a worker thread ended early")));
      next();
    });
  }
}

/** Numbers to blocks. */
import { partsOf } from "../../base/ranges";
import type { NativeAddon } from "../native-surface";
import type { Steps } from "./block-jobs";
import { failure } from "./failure";
import { startJob } from "./jobs";
import * as kernels from "./kernels";

/** What the addon does with numbers that become blocks. */
export const encoding = {
  quantize: (type, numbers, columns, importance, out, _threads, best = false) => {
    const work = encodingOf(type, numbers, columns, importance, out, best);
    for (const _ of work.steps);
    return work.finish();
  },
  quantizeAsync: (type, numbers, columns, importance, out, onProgress, _threads, best = false) => {
    const work = encodingOf(type, numbers, columns, importance, out, best);
    return startJob({ ...work, release: () => undefined }, onProgress, numbers.length <= work.step);
  },
} satisfies Partial<NativeAddon>;

/** The work, a step at a time. */
function encodingOf(
  type: number,
  numbers: Float32Array,
  columns: number,
  importance: Float32Array | undefined,
  out: Uint8Array | undefined,
  best: boolean,
) {
  const { name, blockSize, typeSize, encodes, needsImportance } = kernels.formatOf(type);
  if (!encodes) throw failure("ERR_GGUF_UNSUPPORTED_TYPE", `cannot make blocks of the tensor type ${name}`);
  if (needsImportance && importance === undefined) {
    throw failure("ERR_GGUF_UNSUPPORTED_TYPE", `blocks of the tensor type ${name} need importance`);
  }
  const total = numbers.length;
  if (importance !== undefined && importance.length !== columns) {
    throw failure("ERR_GGUF_RANGE", `importance has ${importance.length} weights, a row has ${columns} columns`);
  }
  const rows = { type, columns, importance: importance?.slice(), best };
  const blocks = out ?? new Uint8Array((total / blockSize) * typeSize);
  const byteLength = (total / blockSize) * typeSize;
  const step = kernels.quantizeStep(rows);
  /** Memory can be taken away between two steps. */
  const check = (): void => {
    if (numbers.length === total && blocks.length === byteLength) return;
    throw failure("ERR_GGUF_RANGE", "the numbers or out were detached, moved or resized");
  };
  function* encode(): Steps {
    for (const { start, end } of partsOf(0, total, step)) {
      check();
      const part = blocks.subarray((start / blockSize) * typeSize, (end / blockSize) * typeSize);
      kernels.quantize(rows, start, numbers.subarray(start, end), part);
      yield end;
    }
  }
  const finish = (): Uint8Array => {
    check();
    return blocks;
  };
  return { steps: encode(), total, finish, step };
}

/** Work on blocks, a step at a time: at once, or as a job. */
import type { NativeDType, NativeOut, ProgressCallback, Started } from "../native-surface";
import type { Blocks } from "./blocks";
import { failure } from "./failure";
import { about } from "./files";
import { startJob } from "./jobs";

/** Numbers of a step: about a millisecond of work, and whole chunks of statistics. */
export const STEP_NUMBERS = 2 ** 18;

/** Jobs of so many numbers are done at once. */
export const SMALL_NUMBERS = 2 ** 16;

/** A piece of work: yields how many numbers are done. */
export type Steps = Generator<number, void, undefined>;

export function newArray(dtype: NativeDType, length: number): NativeOut {
  return dtype === 0 ? new Float32Array(length) : new Uint16Array(length);
}

/** The caller's array, which must have this length still, or a new one. */
export function outOrNew(out: NativeOut | undefined, dtype: NativeDType, length: number): NativeOut {
  if (out === undefined) return newArray(dtype, length);
  if (out.length === length) return out;
  throw failure("ERR_GGUF_RANGE", `out holds ${out.length} elements, the result has ${length}`);
}

/**
 * Starts work on blocks that fills `out`, and is over when all its numbers are done. Nothing else runs during a step: it
 * writes where the array is then.
 */
export function start<A extends NativeOut>(
  blocks: Blocks,
  out: A,
  work: Iterator<number, void, undefined>,
  onProgress: ProgressCallback | undefined,
  isSmall: boolean,
): Started<A> {
  const total = out.length;
  const check = (): void => {
    if (out.length === total) return;
    throw failure("ERR_GGUF_RANGE", "out was detached, moved or resized while the work was going on");
  };
  function next(): IteratorResult<number, void> {
    check();
    return work.next();
  }
  function finish(): A {
    check();
    return out;
  }
  return startOn([blocks], { steps: { next }, total, finish }, onProgress, isSmall);
}

/** Starts work on blocks, which stay there until it is over. */
export function startOn<Result>(
  sources: readonly Blocks[],
  { steps, total, finish }: { steps: Iterator<number, void, undefined>; total: number; finish: () => Result },
  onProgress: ProgressCallback | undefined,
  isSmall: boolean,
): Started<Result> {
  for (const source of sources) source.retain();
  const release = (): void => {
    for (const source of sources) source.release();
  };
  const { path } = sources[0] as Blocks;
  const next = (): IteratorResult<number, void> => about(path, () => steps.next());
  const inMemory = sources.every(({ isMemory }) => isMemory);
  return startJob({ steps: { next }, total, finish, release }, onProgress, isSmall && inMemory);
}

/** Does all steps at once. */
export function run({ path }: Blocks, steps: Iterable<number>): void {
  about(path, () => {
    for (const _ of steps);
  });
}

/** Weights of a file in memory before they are needed. */
import { native } from "../backend/native";
import { ASYNC_OPTIONS, checkAsync, checkBoolean, checkOptions, type OptionNames } from "../base/arguments";
import { invalidArgType } from "../base/errors";
import type { AsyncOptions } from "../base/options";
import { runJob } from "../decode/jobs";
import { handleOf, type OpenFile } from "./handle";
import { type GgufModelTensor, placeOf } from "./model-tensor";

/** Options of `warm`. */
export interface WarmOptions extends AsyncOptions {
  /** The tensors that are needed, or their names. Default: all of the model. */
  tensors?: Iterable<GgufModelTensor | string> | undefined;
  /**
   * Keeps them in memory until the file is closed, so that the system does not give their pages to others. Most systems
   * limit how much a process may lock. Only for a file that is mapped, not one that was opened with access "read". Default false.
   */
  lock?: boolean | undefined;
}

const WARM_OPTIONS: OptionNames<WarmOptions> = { tensors: true, lock: true, ...ASYNC_OPTIONS };

/** Bytes of a file from `start` to `end`. */
interface Part {
  file: OpenFile;
  start: number;
  end: number;
}

/** Parts that are so near to each other are brought in as one: what is between them is padding. */
const NEAR_BYTES = 2 ** 16;

/** Brings tensors of an open model into memory; `find` gives one by its name. */
export async function warm(
  all: () => Iterable<GgufModelTensor>,
  find: (name: string) => GgufModelTensor,
  options: WarmOptions | undefined,
): Promise<void> {
  const given = checkOptions(options, WARM_OPTIONS);
  const lock = checkBoolean("options.lock", given.lock, false);
  const { onProgress, ...how } = checkAsync(given);
  const parts = partsOf(given.tensors === undefined ? all() : tensorsOf(given.tensors, find));
  const total = parts.reduce((sum, { start, end }) => sum + end - start, 0);
  let before = 0;
  for (const { file, start, end } of parts) {
    const report = onProgress && ((done: number): void => onProgress(before + done, total));
    await runJob(
      { ...how, onProgress: report },
      (...rest) => native.warm(handleOf(file), start, end - start, lock, ...rest),
      (error) => error,
    );
    before += end - start;
  }
}

function tensorsOf(given: unknown, find: (name: string) => GgufModelTensor): GgufModelTensor[] {
  if (typeof given !== "object" || given === null || !(Symbol.iterator in given)) {
    throw invalidArgType("options.tensors", "a list of tensors or of their names", given);
  }
  return Array.from(given as Iterable<unknown>, (each) => {
    const name = typeof each === "string" ? each : (each as Partial<GgufModelTensor> | null)?.name;
    if (typeof name !== "string") throw invalidArgType("options.tensors", "of tensors or of their names", each);
    return find(name);
  });
}

/** The parts of files where tensors are, in their order. Bytes in memory are there already. */
function partsOf(tensors: Iterable<GgufModelTensor>): Part[] {
  const byFile = new Map<OpenFile, Part[]>();
  for (const tensor of tensors) {
    const { file } = placeOf(tensor);
    const { offset: start, byteLength } = tensor;
    if (file.path === undefined || !(byteLength > 0)) continue; // NaN: of an unknown type
    if (!byFile.has(file)) byFile.set(file, []);
    byFile.get(file)?.push({ file, start, end: start + byteLength });
  }
  return [...byFile.values()].flatMap(joined);
}

/** What is near to each other as one part. */
function joined(parts: Part[]): Part[] {
  const result: Part[] = [];
  for (const part of parts.sort((a, b) => a.start - b.start)) {
    const last = result.at(-1);
    if (last !== undefined && part.start - last.end < NEAR_BYTES) last.end = Math.max(last.end, part.end);
    else result.push(part);
  }
  return result;
}

/**
 * Split models: several files that are one model.
 *
 * Each shard is a complete GGUF file. `split.no` counts from 0, the file names from 1
 * (`-00001-of-00003.gguf`), and `split.tensors.count` is the total over all shards. The first shard has the
 * model's metadata.
 */

import { native } from "../backend/native";
import { errorAbout, GgufError, type GgufErrorCode } from "../base/errors";
import { forEachConcurrently } from "../source/concurrent";
import { closeFile, type OpenFile } from "./handle";
import { NameList, TENSORS } from "./listing";
import { GgufMetadata } from "./metadata";
import { shardSuffix } from "./shard-names";

/** The keys that make a file a shard. */
export const SPLIT_NO = "split.no";
export const SPLIT_COUNT = "split.count";
export const SPLIT_TENSORS = "split.tensors.count";
export const SPLIT_KEYS: readonly string[] = [SPLIT_NO, SPLIT_COUNT, SPLIT_TENSORS];

/** The maximum number of shards: five digits. */
export const MAX_SHARDS = 99_999;

/** The most tensors of a split model: their names are compared in a map, which holds no more than 2^24. */
const MAX_SPLIT_TENSORS = 2 ** 23;

/** The number of shards that are opened at a time. */
export const MAX_OPENING = 8;

/** The advice on how to open only one of the files. */
const ALONE = "alone with { splits: false }";

/** The metadata of a shard. */
interface Split {
  no: number;
  count: number;
  tensors: number;
}

/** A file of a model, before it is opened. */
export interface Shard<F extends OpenFile> {
  readonly place: string;
  /** Throws unless the file that was opened there belongs to the model. */
  check(file: F): void;
  /** Returns the error to throw if it cannot be opened. */
  explain(error: unknown): unknown;
}

/**
 * Names the files of a model to open: first the one at `place`; then, when it gets that opened file, all
 * others together. When it gets these, in the same order, it returns all files in the order of the shards. It
 * returns only the first file if that is not a shard, or if `splits` is false. {@link openEach} and
 * {@link openEachSync} open the files.
 */
export function* shardsOf<F extends OpenFile>(
  place: string,
  splits: boolean,
  sibling: (place: string, no: number, count: number) => string | undefined,
): Generator<Shard<F>[], [F, ...F[]], F[]> {
  const [given] = (yield [{ place, check: () => undefined, explain: (error) => error }]) as [F];
  const split = splits ? readSplit(given) : undefined;
  if (split === undefined) return [given];
  if (sibling(place, split.no, split.count) !== place) throw misnamed(given, split);
  const others: Shard<F>[] = [];
  for (let no = 0; no < split.count; no++) {
    if (no === split.no) continue;
    others.push({
      place: sibling(place, no, split.count) as string,
      check: (file) => checkShard(file, no, split, given),
      explain: (error) => explainShard(error, no, split),
    });
  }
  const shards = yield others;
  shards.splice(split.no, 0, given);
  checkTensors(shards, split);
  return shards as [F, ...F[]];
}

/** Opens the files that {@link shardsOf} names. If one fails, all opened files are closed. */
export function openEachSync<F extends OpenFile>(
  shards: ReturnType<typeof shardsOf<F>>,
  open: (place: string) => F,
): [F, ...F[]] {
  const opened: F[] = [];
  const openShard = ({ place, check, explain }: Shard<F>): F => {
    let file: F;
    try {
      file = open(place);
    } catch (error) {
      throw explain(error);
    }
    opened.push(file);
    check(file);
    return file;
  };
  try {
    let step = shards.next();
    while (!step.done) step = shards.next(step.value.map(openShard));
    return step.value;
  } catch (error) {
    for (const file of opened) closeFile(file);
    throw error;
  }
}

/**
 * The same, with several files at a time. If several shards fail, the error is that of the first one in shard
 * order.
 */
export async function openEach<F extends OpenFile>(
  shards: ReturnType<typeof shardsOf<F>>,
  open: (place: string, signal: AbortSignal) => Promise<F>,
  signal?: AbortSignal,
  close: (file: F) => void | Promise<void> = closeFile,
): Promise<[F, ...F[]]> {
  const opened: F[] = [];
  try {
    let step = shards.next();
    while (!step.done) {
      const files: F[] = [];
      const numbered = step.value.entries();
      await forEachConcurrently(numbered, MAX_OPENING, signal, async ([i, shard], stop) => {
        const file = await open(shard.place, stop).catch((error) => {
          throw shard.explain(error);
        });
        opened.push(file);
        shard.check(file);
        files[i] = file;
      });
      step = shards.next(files);
    }
    return step.value;
  } catch (error) {
    for (const file of opened) await close(file);
    throw error;
  }
}

function explainShard(error: unknown, no: number, split: Split): unknown {
  if (!(error instanceof GgufError) || error.code !== "ERR_GGUF_OPEN") return error;
  const hint = isMissing(error) ? ` (put all its files into one folder, or open one ${ALONE})` : "";
  const where = `shard ${no + 1} of ${split.count} of the split model${hint}: `;
  return errorAbout(error, { path: error.path }, where);
}

/** Whether the file does not exist, on this machine or on the server. */
export function isMissing({ cause }: GgufError): boolean {
  const { code, status } = (cause ?? {}) as { code?: unknown; status?: unknown };
  return code === "ENOENT" || status === 404;
}

/** Reads the metadata of a shard; returns undefined for a file that is not one of several. */
function readSplit(file: OpenFile): Split | undefined {
  if (!file.info.isSplit) return undefined;
  const count = readNumber(file, SPLIT_COUNT);
  if (count <= 1) return undefined; // a model that was split and merged
  const no = readNumber(file, SPLIT_NO);
  const tensors = readNumber(file, SPLIT_TENSORS);
  if (no >= count) throw invalid(file, `${SPLIT_NO} is ${no}, but ${SPLIT_COUNT} is ${count}`);
  if (count > MAX_SHARDS) throw invalid(file, `${SPLIT_COUNT} is ${count}; the maximum is ${MAX_SHARDS}`);
  return { no, count, tensors };
}

function readNumber(file: OpenFile, key: string): number {
  let value: number | undefined;
  try {
    value = GgufMetadata.of(file).number(key);
  } catch (error) {
    const code: GgufErrorCode[] = ["ERR_GGUF_METADATA_TYPE", "ERR_GGUF_METADATA_RANGE"];
    if (error instanceof GgufError && code.includes(error.code as GgufErrorCode)) {
      throw invalid(file, `${key} must be a whole number`, error);
    }
    throw error;
  }
  if (value === undefined) throw invalid(file, `it has ${SPLIT_COUNT} but no ${key}`);
  if (!Number.isInteger(value) || value < 0) throw invalid(file, `${key} must be a whole number, found ${value}`);
  return value;
}

function misnamed(file: OpenFile, { no, count }: Split): GgufError {
  const detail = `shard ${no + 1} of ${count} of a split model must have a name that ends in '${shardSuffix(no, count)}', so that the other files can be found; rename it, or open it ${ALONE}`;
  return invalid(file, detail);
}

function checkShard(file: OpenFile, no: number, split: Split, given: OpenFile): void {
  const found = readSplit(file);
  const foreign = (detail: string): GgufError =>
    invalid(file, `${detail}; it does not belong to the split model of ${given.path}`);
  if (found === undefined) throw foreign("it is not a shard of a split model");
  if (found.count !== split.count) {
    throw foreign(`it is one of ${found.count} shards (${SPLIT_COUNT}), not of ${split.count}`);
  }
  if (found.no !== no) {
    throw invalid(
      file,
      `it is shard ${found.no + 1} (${SPLIT_NO} is ${found.no}), but its name says shard ${no + 1}: it was copied or renamed`,
    );
  }
  if (found.tensors !== split.tensors) {
    throw foreign(`it is part of a model with ${found.tensors} tensors (${SPLIT_TENSORS}), not ${split.tensors}`);
  }
  if (file.info.bigEndian !== given.info.bigEndian) throw foreign("its byte order differs");
  const [ours, theirs] = [given, file].map(architectureOf);
  if (ours !== undefined && theirs !== undefined && ours !== theirs) {
    throw foreign(`its architecture is ${theirs}, not ${ours}`);
  }
}

/** Undefined where it is no string: an array of any length is not decoded for this. */
function architectureOf(file: OpenFile): string | undefined {
  const metadata = GgufMetadata.of(file);
  return metadata.typeOf("general.architecture")?.type === "string" ? metadata.architecture : undefined;
}

function checkTensors(files: readonly OpenFile[], split: Split): void {
  const owners = new Map<string, OpenFile>();
  const count = files.reduce((sum, { info }) => sum + info.tensorCount, 0);
  if (count > MAX_SPLIT_TENSORS) {
    const detail = `the ${files.length} shards have ${count} tensors together; at most ${MAX_SPLIT_TENSORS} are allowed`;
    throw invalid(files[0] as OpenFile, detail);
  }
  for (const file of files) {
    let i = -1;
    for (const name of new NameList([file], TENSORS).names()) {
      i++;
      // Names that are not UTF-8 may look alike, but for their bytes. No other name has this character.
      const id = name.includes("\ufffd") ? `\ufffd${native.tensorNameBytes(file.handle, i).join()}` : name;
      const owner = owners.get(id);
      if (owner !== undefined && owner !== file) {
        throw invalid(
          file,
          `it has a tensor '${name}' that is also in ${owner.path}: the files belong to different models`,
        );
      }
      owners.set(id, file);
    }
  }
  if (count !== split.tensors) {
    const detail = `the ${files.length} shards have ${count} tensors together, but ${SPLIT_TENSORS} is ${split.tensors}: one of them belongs to another model, or is incomplete`;
    throw invalid(files[0] as OpenFile, detail);
  }
}

function invalid(file: OpenFile, detail: string, cause?: unknown): GgufError {
  return new GgufError("ERR_GGUF_INVALID", detail, { path: file.path, cause });
}

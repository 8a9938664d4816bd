/** A model in several files, and back in one: {@link splitModel}, {@link mergeModel}. */

import { checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import { ALIGNMENT_KEY } from "../file/metadata-keys";
import { checkPath } from "../file/open";
import { shardSuffix } from "../file/shard-names";
import { MAX_SHARDS, SPLIT_KEYS } from "../file/splits";
import { alignUp } from "../layout/header-bytes";
import { type Contents, checkCount, fileChunks, layOut, type TensorEntry } from "../layout/layout";
import { checkInputs, closeInputs, type Extent, extentPieces, type InputFile, openInputs } from "./input-file";
import { settleModel } from "./journal";
import type { Replaced } from "./replaced-files";
import { encodeEntry } from "./values";
import { type CheckedWriteOptions, checkWriteOptions, WRITE_OPTIONS, type WriteOptions } from "./write-options";
import { type Output, writeOutputs } from "./write-outputs";

/** How large the files of {@link splitModel} may be; at least one of the limits is needed. */
export interface SplitOptions extends WriteOptions {
  /** Most tensors of one file. */
  maxTensors?: number | undefined;
  /** Most bytes of one file; more only where its one tensor, or the metadata of the first file, take more. */
  maxBytes?: number | undefined;
}

const SPLIT_OPTIONS: OptionNames<SplitOptions> = { ...WRITE_OPTIONS, maxTensors: true, maxBytes: true };

/**
 * Splits a model into several files, `OUTPUT-00001-of-00003.gguf` and so on. The first holds the metadata; tensors keep
 * their order and their bytes. All files appear at the end, together.
 *
 * @param source a model; one that is split already is split again
 * @param output the path of the files up to the number; an ending `.gguf` is left out
 * @returns the paths of the files, in order
 * @throws TypeError for an `output` that ends in a folder: `dir/`
 * @throws GgufError as `open`; ERR_GGUF_RANGE for limits that make more than 99,999 files, or are none;
 *   ERR_GGUF_UNSUPPORTED_TYPE for a model with a tensor of an unknown type;
 *   ERR_GGUF_CHANGED if a source changes in the meantime; ERR_GGUF_WRITE
 */
export async function splitModel(source: string | URL, output: string | URL, options: SplitOptions): Promise<string[]> {
  return (await splitFiles(source, output, options, false)).map(({ path }) => path);
}

/** A file that was written, or would be. */
interface WrittenFile {
  readonly path: string;
  readonly byteLength: number;
  /** What is there already, and whether that is of the model. */
  readonly replaces?: Replaced;
}

/**
 * As {@link splitModel}, with the sizes of the files.
 * @param dryRun only says which files there would be
 * @internal
 */
export async function splitFiles(
  source: string | URL,
  output: string | URL,
  options: SplitOptions,
  dryRun: boolean,
): Promise<WrittenFile[]> {
  const prefix = checkPath(output).replace(/\.gguf$/i, "");
  if (/(^|[\\/])$/.test(prefix)) throw invalidArgValue("output", "must end in a file name", output);
  const { maxTensors, maxBytes } = checkOptions(options, SPLIT_OPTIONS);
  const limits: Limits = {
    tensors: checkLimit("options.maxTensors", maxTensors),
    bytes: checkLimit("options.maxBytes", maxBytes),
  };
  if (maxTensors === undefined && maxBytes === undefined) {
    throw invalidArgValue("options", "must have maxTensors or maxBytes", options);
  }
  const checked = checkWriteOptions(options, SPLIT_OPTIONS);
  return copy(source, checked, dryRun, ({ entries, tensors, ...rest }) => {
    const alignmentEntry = entries.get(ALIGNMENT_KEY);
    const model = { ...rest, entries: withoutSplit(entries) };
    const further = { ...rest, entries: alignmentEntry === undefined ? [] : [alignmentEntry] };
    const groups = group(model, further, tensors, limits);
    if (groups.length > MAX_SHARDS) {
      const detail = `the model would be in ${groups.length} files, more than ${MAX_SHARDS}: choose a larger limit`;
      throw new GgufError("ERR_GGUF_RANGE", detail);
    }
    return groups.map((group, no) => {
      const base = no === 0 ? model : further;
      const split = splitEntries(base.format, no, groups.length, tensors.length);
      const contents = { ...base, entries: [...base.entries, ...split], tensors: group };
      return { path: prefix + shardSuffix(no, groups.length), contents };
    });
  });
}

/**
 * Writes one file of all files of a split model.
 *
 * @param source any of its files
 * @param output another file: one of several files of the model would leave the others alone
 * @throws GgufError as `open`; ERR_GGUF_UNSUPPORTED_TYPE for a model with a tensor of an unknown type;
 *   ERR_GGUF_CHANGED if a source changes in the meantime; ERR_GGUF_WRITE
 */
export async function mergeModel(source: string | URL, output: string | URL, options?: WriteOptions): Promise<void> {
  const path = checkPath(output);
  await copy(source, checkWriteOptions(options), false, ({ entries, ...rest }) => [
    { path, contents: { ...rest, entries: withoutSplit(entries) } },
  ]);
}

/** A tensor, and where its data is copied from. */
interface CopiedTensor extends TensorEntry {
  readonly extent: Extent;
}

type CopiedContents = Contents<CopiedTensor>;

/** All of a model that may be in several files. */
interface Model extends Omit<CopiedContents, "entries"> {
  entries: Map<string, Uint8Array>;
}

/** Opens a model and writes it, unless it is only looked at, as the files that `arrange` makes of it. */
async function copy(
  source: string | URL,
  options: CheckedWriteOptions,
  dryRun: boolean,
  arrange: (model: Model) => { path: string; contents: CopiedContents }[],
): Promise<WrittenFile[]> {
  const path = checkPath(source);
  const { signal } = options;
  signal?.throwIfAborted();
  if (!dryRun) await settleModel(path, signal);
  const inputs = await openInputs(path, signal);
  try {
    const [{ header, info }] = inputs;
    checkCount(
      inputs.reduce((sum, { header }) => sum + header.tensorCount, 0),
      "tensors",
      path,
    );
    const model = {
      format: header.format,
      alignment: info.alignment,
      entries: header.entries(),
      tensors: inputs.flatMap(copiedTensors),
    };
    const outputs = arrange(model).map(({ path, contents }): Output => {
      const layout = layOut(contents);
      const chunks = fileChunks(contents, layout, ({ extent }) => extentPieces(extent));
      return { path, byteLength: layout.byteLength, chunks };
    });
    const origin = { model: inputs.map((input) => input.path) };
    const replaced = await writeOutputs(outputs, origin, { ...options, dryRun }, async () => {
      await checkInputs(inputs);
      await closeInputs(inputs);
    });
    return outputs.map(({ path, byteLength }) => {
      const replaces = replaced.get(path);
      return { path, byteLength, ...(replaces === undefined ? {} : { replaces }) };
    });
  } finally {
    await closeInputs(inputs);
  }
}

function copiedTensors({ header, source }: InputFile): CopiedTensor[] {
  return header.tensors().map(({ offset, ...entry }) => {
    return { ...entry, extent: { source, offset, byteLength: entry.byteLength } };
  });
}

function withoutSplit(entries: Map<string, Uint8Array>): Uint8Array[] {
  return [...entries].flatMap(([key, entry]) => (SPLIT_KEYS.includes(key) ? [] : [entry]));
}

function splitEntries(format: Contents["format"], no: number, count: number, tensors: number): Uint8Array[] {
  const values = [no, count, tensors];
  return SPLIT_KEYS.map((key, i) => encodeEntry(format, key, values[i] as number, undefined));
}

interface Limits {
  tensors: number;
  bytes: number;
}

type Base = Omit<CopiedContents, "tensors">;

/** Which tensors go into which file: as many as each takes, in their order. */
function group(first: Base, further: Base, tensors: readonly CopiedTensor[], limits: Limits): CopiedTensor[][] {
  const { format, alignment } = first;
  // The numbers do not matter, all take the same room.
  const split = splitEntries(format, 0, 1, tensors.length);
  const headerBytes = (base: Base, group: CopiedTensor[]): number =>
    layOut({ ...base, entries: [...base.entries, ...split], tensors: group }).header.length;
  const emptyBytes = [headerBytes(first, []), headerBytes(further, [])] as const;

  const groups: CopiedTensor[][] = [[]];
  let header: number = emptyBytes[0];
  let data = 0;
  for (const tensor of tensors) {
    const entry = headerBytes(further, [tensor]) - emptyBytes[1];
    const bytes = alignUp(tensor.byteLength, alignment);
    const current = groups.at(-1) as CopiedTensor[];
    const isFull = current.length >= limits.tensors || alignUp(header + entry, alignment) + data + bytes > limits.bytes;
    // The first file may be full of metadata alone.
    if (isFull && (current.length > 0 || groups.length === 1)) {
      groups.push([tensor]);
      [header, data] = [emptyBytes[1] + entry, bytes];
    } else {
      current.push(tensor);
      header += entry;
      data += bytes;
    }
  }
  return groups;
}

function checkLimit(name: string, value: unknown): number {
  if (value === undefined) return Number.POSITIVE_INFINITY;
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  if (!(value >= 1)) throw new GgufError("ERR_GGUF_RANGE", `${name} must be at least 1, found ${value}`);
  return value;
}

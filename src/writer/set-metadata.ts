/** Changing the metadata of a file: {@link setMetadata}. */

import { checkBoolean, checkOptions, type OptionNames } from "../base/arguments";
import { errorAbout, GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import { GgufMetadata } from "../file/metadata";
import { ALIGNMENT_KEY } from "../file/metadata-keys";
import { checkPath } from "../file/open";
import { alignUp, HeaderBytes, type HeaderFormat } from "../layout/header-bytes";
import { DEFAULT_ALIGNMENT, writePreamble, zeros } from "../layout/layout";
import type { FileAccess } from "../source/file";
import { changeInPlace, changeOf, isAtomic } from "./change-in-place";
import { checkInput, closeInput, extentPieces, type InputFile, openInput } from "./input-file";
import { settleModel } from "./journal";
import { parseMetadataValue } from "./text";
import { inTurn } from "./turns";
import {
  checkKey,
  checkType,
  type DeclaredType,
  encodeEntry,
  type GgufInput,
  type GgufInputType,
  isArrayValue,
  knownType,
} from "./values";
import { type CheckedWriteOptions, checkWriteOptions, WRITE_OPTIONS, type WriteOptions } from "./write-options";
import { writeOutputs } from "./write-outputs";

/** A new value of a key, and the type it gets if not that of the old one. */
export interface DeclaredChange {
  /** The value. */
  readonly value: GgufInput;
  /** Its type in the file. */
  readonly type?: GgufInputType | undefined;
}

/** A new value as text, as a command line has it; see {@link parseMetadataValue}. */
export interface TextChange {
  /** The value; arrays in JSON. */
  readonly text: string;
  /** Its type in the file. */
  readonly type?: GgufInputType | undefined;
}

/** What {@link setMetadata} did. */
export interface SetMetadataResult {
  /** Whether the header was changed where it was; otherwise, the file was replaced by a changed copy. */
  inPlace: boolean;
}

/**
 * What becomes of a key: a value; a value and the type to declare it as; the same as text, see
 * {@link parseMetadataValue}; undefined to remove the key.
 */
export type MetadataChange = GgufInput | DeclaredChange | TextChange | undefined;

/** Options of {@link setMetadata}. */
export interface SetMetadataOptions extends WriteOptions {
  /** Writes the changed file here, and leaves the original alone. */
  output?: string | URL | undefined;
  /**
   * Where the header is changed where it is. By default only where one write within 4,096 bytes does it, which no reader
   * sees half done. With true also where more bytes change, if the new header fits in the room before the tensor data:
   * quick, whatever the size of the file; but a reader who opens it meanwhile sees a header that is half old and half
   * new. With false never.
   */
  inPlace?: boolean | undefined;
}

const SET_METADATA_OPTIONS: OptionNames<SetMetadataOptions> = {
  ...WRITE_OPTIONS,
  output: true,
  inPlace: true,
};

/**
 * Changes metadata of one file (of a split model: of this shard).
 *
 * A key that is there keeps its place and, unless another is given, its type; a new one comes last, declared as by
 * `GgufWriter.set`. Everything else stays as it is, byte for byte.
 *
 * Another program that opens the file finds the old content or the new, even if the process is killed: the header is
 * changed in place where one write does that ({@link SetMetadataOptions.inPlace}). Otherwise a changed copy is written
 * beside the file, and then renamed over it. Where the file system can share data between files (Btrfs, XFS), and the
 * tensor data need not move, the copy is made at once. Other hard links to the file keep the old one.
 *
 * Changes to one file that this process asks for at the same time are made one after the other. Of two processes, the
 * later one fails with ERR_GGUF_CHANGED unless it read the file after the first had changed it.
 *
 * @param path a path, or a `file:` URL
 * @param changes by key: an object, or entries such as those of a Map
 * @returns whether it was done in place
 * @throws GgufError as `open`; ERR_GGUF_METADATA_TYPE and ERR_GGUF_METADATA_RANGE for a value that does not fit its type;
 *   ERR_GGUF_INVALID for another `general.alignment`, with which the tensor data would have to move;
 *   ERR_GGUF_CHANGED where the file changes meanwhile, or is replaced; ERR_GGUF_WRITE; as `recover`
 */
export async function setMetadata(
  path: string | URL,
  changes: Readonly<Record<string, MetadataChange>> | Iterable<readonly [string, MetadataChange]>,
  options?: SetMetadataOptions,
): Promise<SetMetadataResult> {
  const file = checkPath(path);
  if (typeof changes !== "object" || changes === null) {
    throw invalidArgType("changes", "an object or entries", changes);
  }
  const given = checkOptions(options, SET_METADATA_OPTIONS);
  const output = given.output === undefined ? undefined : checkPath(given.output);
  const inPlace = given.inPlace === undefined ? undefined : checkBoolean("options.inPlace", given.inPlace, false);
  if (inPlace && output !== undefined) {
    throw invalidArgValue("options.inPlace", "cannot be true with an output", inPlace);
  }
  const checked = checkWriteOptions(options, SET_METADATA_OPTIONS);
  const entries = Symbol.iterator in changes ? changes : Object.entries(changes);
  return planMetadata(file, { access: output === undefined ? "r+" : "r", signal: checked.signal }, (plan) => {
    plan.encode(entries);
    return plan.make(output, inPlace, checked);
  });
}

/**
 * Opens a file whose metadata is to be changed, for `work` to encode the change, look at it, and make it; in turn with other
 * changes. What other processes have left behind is settled first.
 * @param access "r+" to replace the file or change it in place; "r" to write to another one; "look" to write nothing, in
 *   which case nothing is settled
 * @throws GgufError as {@link setMetadata}
 * @internal
 */
export function planMetadata<T>(
  path: string,
  { access, signal }: { access: FileAccess | "look"; signal?: AbortSignal | undefined },
  work: (plan: MetadataPlan) => Promise<T>,
): Promise<T> {
  return inTurn(path, async () => {
    signal?.throwIfAborted();
    if (access !== "look") await settleModel(path, signal);
    const input = await openInput(path, access === "r+" ? "r+" : "r", signal);
    try {
      return await work(new MetadataPlan(input));
    } finally {
      await closeInput(input);
    }
  });
}

/** A change of an open file. What is looked at before it is made is what is written. @internal */
export class MetadataPlan {
  /** As the file has it. */
  readonly metadata: GgufMetadata;
  readonly #input: InputFile;
  #header: Uint8Array | undefined;

  constructor(input: InputFile) {
    this.metadata = GgufMetadata.of(input);
    this.#input = input;
  }

  /** Encodes the header with the changes, up to the padding. */
  encode(changes: Iterable<readonly [string, MetadataChange]>): Uint8Array {
    this.#header = changedHeader(this.#input, this.metadata, changes);
    return this.#header;
  }

  /** Makes the change that was encoded: in place, in a file that replaces this one, or in `output`. */
  async make(
    output: string | undefined,
    inPlace: boolean | undefined,
    options: CheckedWriteOptions,
  ): Promise<SetMetadataResult> {
    const input = this.#input;
    const header = this.#header as Uint8Array;
    const { signal } = options;
    const dataOffset = alignUp(header.length, input.info.alignment);
    signal?.throwIfAborted();
    // A file without tensors may end without padding.
    const fits = [dataOffset, header.length].includes(input.dataOffset);
    if (output === undefined && fits && inPlace !== false) {
      const difference = await changeOf(input, header);
      if (inPlace || isAtomic(difference)) {
        await changeInPlace(input, difference, signal);
        return { inPlace: true };
      }
    }
    const dataBytes = input.source.byteLength - input.dataOffset;
    const canShare = dataOffset === input.dataOffset;
    const target = {
      path: output ?? input.path,
      byteLength: dataOffset + dataBytes,
      chunks: withHeader(input, header, dataOffset, dataBytes),
      base: canShare ? { source: input.source, start: startOf(input, header) } : undefined,
    };
    await writeOutputs([target], { model: [input.path] }, options, async () => {
      await checkInput(input);
      await closeInput(input);
    });
    return { inPlace: false };
  }
}

/** The new header, and zeros for what the old one took beyond it. */
function startOf(input: InputFile, header: Uint8Array): Uint8Array {
  const start = new Uint8Array(Math.max(header.length, input.header.byteLength));
  start.set(header);
  return start;
}

function changedHeader(
  input: InputFile,
  metadata: GgufMetadata,
  changes: Iterable<readonly [string, MetadataChange]>,
): Uint8Array {
  const { header } = input;
  const entries = header.entries();
  const alignmentBefore = entries.get(ALIGNMENT_KEY);
  for (const [key, change] of changes) {
    checkKey(key);
    if (change === undefined) entries.delete(key);
    else entries.set(key, encodeChange(header.format, metadata, key, change));
  }
  refuseNewAlignment(input, alignmentBefore, entries.get(ALIGNMENT_KEY));
  const out = writePreamble(new HeaderBytes(header.format), header.tensorCount, entries.size);
  for (const entry of entries.values()) out.raw(entry);
  return out.raw(header.directory()).bytes;
}

function encodeChange(
  format: HeaderFormat,
  metadata: GgufMetadata,
  key: string,
  change: Exclude<MetadataChange, undefined>,
): Uint8Array {
  const isValue = typeof change !== "object" || change === null || isArrayValue(change);
  const given = isValue ? { value: change as GgufInput } : (change as Exclude<typeof change, GgufInput>);
  const type = checkType("type" in given ? given.type : undefined) ?? checkType(metadata.typeOf(key));
  if ("value" in given) return encodeEntry(format, key, given.value, type);
  const { text } = given;
  if (typeof text !== "string") throw invalidArgType(`changes['${key}']`, "a metadata value", change);
  const declared = type ?? knownType(key, text.trimStart().startsWith("["));
  return encodeEntry(format, key, parseFor(key, text, declared), declared);
}

/** Errors say which key they are about. */
function parseFor(key: string, text: string, type: DeclaredType | undefined): GgufInput {
  try {
    return parseMetadataValue(text, type as GgufInputType | undefined);
  } catch (error) {
    if (!(error instanceof GgufError)) throw error;
    throw errorAbout(error, {}, `metadata key '${key}': `);
  }
}

function refuseNewAlignment(
  { header, info, path }: InputFile,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): void {
  const byDefault = encodeEntry(header.format, ALIGNMENT_KEY, DEFAULT_ALIGNMENT, undefined);
  if (Buffer.compare(before ?? byDefault, after ?? byDefault) === 0) return;
  const detail = `${ALIGNMENT_KEY} is ${info.alignment} and cannot be changed, since tensor data would have to move: write a new file with GgufWriter`;
  throw new GgufError("ERR_GGUF_INVALID", detail, { path });
}

async function* withHeader(
  { source, dataOffset: offset }: InputFile,
  header: Uint8Array,
  dataOffset: number,
  byteLength: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield header;
  yield* zeros(dataOffset - header.length);
  yield* extentPieces({ source, offset, byteLength });
}

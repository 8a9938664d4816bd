/** Changing the metadata of a file: {@link setMetadata}. */

import { checkOptions, checkProgress, checkSignal } from "../decode/options";
import { GgufError, invalidArgType } from "../errors";
import { createMetadata, type GgufMetadata } from "../file/metadata";
import { checkPath } from "../file/open";
import { Source } from "../source/file";
import { alignUp, HeaderBytes } from "./header-bytes";
import { DEFAULT_ALIGNMENT, writeFront, zeros } from "./layout";
import { type WriteOptions, writeOutputs, writing } from "./output-file";
import { parseMetadataValue } from "./text";
import {
  checkKey,
  checkType,
  encodeEntry,
  type GgufInput,
  type GgufInputType,
  isArrayValue,
  knownType,
} from "./values";

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
  /** Whether the header was changed where it was; the file was written anew otherwise. */
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
}

const ALIGNMENT_KEY = "general.alignment";

/**
 * Changes metadata of one file (of a split model: of this shard).
 *
 * A key that is there keeps its place and, unless another is given, its type; a new one comes last, declared as by
 * `GgufWriter.set`. Everything else stays as it is, byte for byte.
 *
 * Where the new header takes the room of the old one and the padding behind it, it is written in place: quick, whatever
 * the size of the file, but not atomic. Otherwise a changed copy is written beside the file, and then renamed over it.
 *
 * @param path a path, or a `file:` URL
 * @param changes by key: an object, or entries such as those of a Map
 * @returns whether it was done in place
 * @throws GgufError as `open`; ERR_GGUF_METADATA_TYPE and ERR_GGUF_METADATA_RANGE for a value that does not fit its type;
 *   ERR_GGUF_INVALID for another `general.alignment`, with which the tensor data would have to move; ERR_GGUF_WRITE
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
  const given = checkOptions(options);
  const output = given.output === undefined ? undefined : checkPath(given.output);
  const signal = checkSignal(given.signal);
  const onProgress = checkProgress(given.onProgress);
  signal?.throwIfAborted();

  const source = await Source.open(file, output === undefined ? "r+" : "r");
  try {
    const header = await changedHeader(
      source,
      Symbol.iterator in changes ? changes : Object.entries(changes),
    );
    const dataOffset = alignUp(header.length, source.alignment);
    signal?.throwIfAborted();
    // Without tensors, the padding may be missing.
    const fits = [dataOffset, header.length].includes(source.dataOffset);
    if (output === undefined && fits) {
      await writing(file, writeInPlace(source, header));
      return { inPlace: true };
    }
    const target = output ?? file;
    const byteLength = dataOffset + source.byteLength - source.dataOffset;
    const chunks = withHeader(source, header, dataOffset);
    await writeOutputs([{ path: target, byteLength, chunks }], signal, onProgress, () => source.close());
    return { inPlace: false };
  } finally {
    await source.close();
  }
}

async function changedHeader(
  source: Source,
  changes: Iterable<readonly [string, MetadataChange]>,
): Promise<Uint8Array> {
  const entries = await source.entries();
  const metadata = createMetadata(source.file);
  for (const [key, change] of changes) {
    checkKey(key);
    const before = entries.get(key);
    if (change === undefined) entries.delete(key);
    else entries.set(key, encodeChange(source, metadata, key, change));
    if (key === ALIGNMENT_KEY) checkAlignment(source, before, entries.get(key));
  }
  const out = writeFront(new HeaderBytes(source.format), source.tensorCount, entries.size);
  for (const entry of entries.values()) out.raw(entry);
  return out.raw(await source.directory()).bytes;
}

function encodeChange(
  source: Source,
  metadata: GgufMetadata,
  key: string,
  change: Exclude<MetadataChange, undefined>,
): Uint8Array {
  const isValue = typeof change !== "object" || change === null || isArrayValue(change);
  const given = isValue ? { value: change as GgufInput } : (change as Exclude<typeof change, GgufInput>);
  const type = checkType("type" in given ? given.type : undefined) ?? checkType(metadata.typeOf(key));
  if ("value" in given) return encodeEntry(source.format, key, given.value, type);
  const { text } = given;
  if (typeof text !== "string") throw invalidArgType(`changes['${key}']`, "a metadata value", change);
  const declared = type ?? knownType(key, text.trimStart().startsWith("["));
  return encodeEntry(source.format, key, parseMetadataValue(text, declared), declared);
}

function checkAlignment(source: Source, before: Uint8Array | undefined, after: Uint8Array | undefined): void {
  const byDefault = encodeEntry(source.format, ALIGNMENT_KEY, DEFAULT_ALIGNMENT, undefined);
  if (Buffer.compare(before ?? byDefault, after ?? byDefault) === 0) return;
  const detail = `${ALIGNMENT_KEY} is ${source.alignment} and cannot be changed, since tensor data would have to move: write the file anew with GgufWriter`;
  throw new GgufError("ERR_GGUF_INVALID", detail, { path: source.path });
}

/** Writes what differs, and the padding. */
async function writeInPlace(source: Source, header: Uint8Array): Promise<void> {
  const old = await source.read(0, source.dataOffset);
  const bytes = new Uint8Array(old.length);
  bytes.set(header);
  const first = bytes.findIndex((byte, i) => byte !== old[i]);
  const last = bytes.findLastIndex((byte, i) => byte !== old[i]);
  if (first >= 0) await source.write(bytes.subarray(first, last + 1), first);
}

async function* withHeader(
  source: Source,
  header: Uint8Array,
  dataOffset: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield header;
  yield* zeros(dataOffset - header.length);
  yield* source.pieces(source.dataOffset, source.byteLength);
}

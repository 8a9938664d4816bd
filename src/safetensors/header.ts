/**
 * The header of a safetensors file:
 *
 *   length: u64, little-endian | JSON, `length` bytes | data of all tensors, back to back
 *   {"__metadata__": {"KEY": "TEXT"}, "NAME": {"dtype": "F16", "shape": [ROWS, COLUMNS], "data_offsets": [BEGIN, END]}}
 *
 * Offsets count from the end of the JSON. Every rule of the format is checked here, so that nothing after it has to.
 */
import { GgufError, type GgufErrorCode } from "../base/errors";
import { Decoder, utf8 } from "../base/text-decoder";
import { grouped } from "../describe/text";
import type { Source } from "../source/source";
import { DTYPES, isDtype, OTHER_DTYPES, type SafetensorsDtype } from "./dtypes";
import { JsonFault, JsonReader, quotable } from "./json-reader";

/** A tensor of the file. */
export interface StoredTensor {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  /** The contiguous dimension is the last one. */
  readonly shape: readonly number[];
  /** Its bytes, counted from the start of the file. */
  readonly begin: number;
  readonly end: number;
}

export interface SafetensorsHeader {
  readonly metadata: ReadonlyMap<string, string>;
  /** In the order of their data. */
  readonly tensors: readonly StoredTensor[];
}

/** Bytes of the length. */
const LENGTH_BYTES = 8;

/** The longest header that the reference reads. */
const MAX_HEADER_BYTES = 100_000_000;

/** What is read first: the whole header of most files. */
const FIRST_BYTES = 64 << 10;

/** Of each tensor there is an object. Known models have some 100,000 tensors at most. */
const MAX_TENSORS = 2 ** 20;

/** Keys of `__metadata__`, of which known models have less than a hundred. */
const MAX_KEYS = 2 ** 20;

/** Characters of a name or key, dimensions of a tensor. */
const MAX_NAME = 2 ** 14;
const MAX_DIMS = 32;

/**
 * Reads and checks the header of a file.
 * @throws GgufError ERR_GGUF_TRUNCATED, ERR_GGUF_INVALID with the byte in `offset`; ERR_GGUF_UNSUPPORTED_TYPE
 */
export async function readSafetensorsHeader(source: Source, signal?: AbortSignal): Promise<SafetensorsHeader> {
  const { path } = source;
  const fail = (code: GgufErrorCode, detail: string, offset: number): GgufError =>
    new GgufError(code, detail, { path, offset });
  const first = new Uint8Array(Math.min(FIRST_BYTES, source.byteLength));
  const arrived = await source.read(0, first, signal);
  if (arrived <= LENGTH_BYTES) {
    const detail = `the file has ${arrived} bytes, too few for the length of the header and the header`;
    throw fail("ERR_GGUF_TRUNCATED", detail, 0);
  }
  const length = new DataView(first.buffer).getBigUint64(0, true);
  if (first[LENGTH_BYTES] !== "{".charCodeAt(0)) {
    throw fail("ERR_GGUF_INVALID", "it is no safetensors file: the header must begin with '{'", LENGTH_BYTES);
  }
  if (length > MAX_HEADER_BYTES) {
    throw fail("ERR_GGUF_INVALID", `the header has ${length} bytes; at most ${MAX_HEADER_BYTES} are allowed`, 0);
  }
  const dataBegin = LENGTH_BYTES + Number(length);
  if (dataBegin > source.byteLength) {
    const detail = `the header has ${length} bytes, but the file ends at byte ${source.byteLength}`;
    throw fail("ERR_GGUF_TRUNCATED", detail, 0);
  }
  let bytes = first.subarray(0, dataBegin);
  if (dataBegin > arrived) {
    bytes = new Uint8Array(dataBegin);
    bytes.set(first.subarray(0, arrived));
    await source.read(arrived, bytes.subarray(arrived), signal);
  }
  return parseHeader(bytes.subarray(LENGTH_BYTES), dataBegin, source.byteLength, path);
}

const decoder = new Decoder("utf-8", { fatal: true, ignoreBOM: true });

function parseHeader(json: Uint8Array, dataBegin: number, fileEnd: number, path: string): SafetensorsHeader {
  let text: string;
  try {
    text = decoder.decode(json);
  } catch {
    throw new GgufError("ERR_GGUF_INVALID", "the header is not UTF-8", { path, offset: LENGTH_BYTES });
  }
  /** The place of a character in the file. */
  const byteOf = (at: number): number => LENGTH_BYTES + utf8(text.slice(0, at)).length;
  const metadata = new Map<string, string>();
  const tensors: PlacedTensor[] = [];
  let tensor: string | undefined;
  try {
    const reader = new JsonReader(text);
    reader.members((name, at) => {
      if (name.length > MAX_NAME) {
        throw new JsonFault(`a name has ${name.length} characters; at most ${MAX_NAME} are allowed`, at);
      }
      if (name === "__metadata__") return readMetadata(reader, metadata);
      tensor = name;
      if (tensors.length === MAX_TENSORS) throw new JsonFault(`there are more than ${MAX_TENSORS} tensors`, at);
      tensors.push({ ...readTensor(reader, name, dataBegin), at });
      tensor = undefined;
    });
    reader.end();
    tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
    let end = dataBegin;
    for (const each of tensors) {
      tensor = each.name;
      const found = `its data begins at byte ${each.begin}, that of the one before ends at byte ${end}`;
      if (each.begin !== end) {
        throw new JsonFault(`${found}: ${each.begin < end ? "they overlap" : "there is a hole"}`, each.at);
      }
      end = each.end;
      if (end > fileEnd) {
        const needed = tensors.at(-1)?.end as number;
        const detail = `incomplete: has ${grouped(fileEnd)} bytes, needs ${grouped(needed)}; the data of tensor '${quotable(each.name)}' is cut off`;
        throw new GgufError("ERR_GGUF_TRUNCATED", detail, { path, offset: byteOf(each.at) });
      }
    }
    if (end !== fileEnd) {
      const detail = `the data of all tensors ends at byte ${end}, the file at byte ${fileEnd}`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path, offset: end });
    }
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    const code = error instanceof UnknownDtype ? "ERR_GGUF_UNSUPPORTED_TYPE" : "ERR_GGUF_INVALID";
    throw new GgufError(code, error.message, {
      path,
      tensor: tensor === undefined ? tensor : quotable(tensor),
      offset: byteOf(error.at),
    });
  }
  return { metadata, tensors };
}

/** With the character of the header that it is at. */
interface PlacedTensor extends StoredTensor {
  readonly at: number;
}

class UnknownDtype extends JsonFault {}

function readMetadata(reader: JsonReader, metadata: Map<string, string>): void {
  reader.members((key, at) => {
    if (key.length > MAX_NAME) throw new JsonFault(`a key of __metadata__ has ${key.length} characters`, at);
    if (metadata.size === MAX_KEYS) throw new JsonFault(`__metadata__ has more than ${MAX_KEYS} keys`, at);
    metadata.set(key, reader.string());
  });
}

function readTensor(reader: JsonReader, name: string, dataBegin: number): StoredTensor {
  let dtype: SafetensorsDtype | undefined;
  let shape: number[] | undefined;
  let offsets: number[] | undefined;
  const start = reader.at;
  reader.members((field, at) => {
    if (field === "dtype") dtype = readDtype(reader);
    else if (field === "shape") shape = readSizes(reader, MAX_DIMS);
    else if (field === "data_offsets") offsets = readSizes(reader, 2);
    else throw new JsonFault(`a tensor has dtype, shape and data_offsets, not '${quotable(field)}'`, at);
  });
  const [begin, end] = offsets ?? [];
  if (dtype === undefined || shape === undefined || begin === undefined || end === undefined) {
    throw new JsonFault("dtype, shape or data_offsets is missing, or no pair of numbers", start);
  }
  // A dimension of 0 counts as 1: whoever multiplies only some of them must not overflow either.
  const product = shape.reduce((product, dim) => product * Math.max(1, dim), DTYPES[dtype].bytes);
  if (product > Number.MAX_SAFE_INTEGER || dataBegin + end > Number.MAX_SAFE_INTEGER) {
    throw new JsonFault(`shape [${shape}] or data_offsets [${offsets}] are 2^53 bytes or more`, start);
  }
  const size = shape.includes(0) ? 0 : product;
  if (end - begin !== size) {
    const taken = `shape [${shape}] of type ${dtype} takes ${size} bytes`;
    throw new JsonFault(`${taken}, but its data is from ${begin} to ${end}`, start);
  }
  return { name, dtype, shape, begin: dataBegin + begin, end: dataBegin + end };
}

function readDtype(reader: JsonReader): SafetensorsDtype {
  const { at } = reader;
  const name = reader.string();
  if (isDtype(name)) return name;
  const known = Object.hasOwn(OTHER_DTYPES, name) ? `${OTHER_DTYPES[name]}; read are` : "none of";
  throw new UnknownDtype(`its type is '${quotable(name)}', ${known} ${Object.keys(DTYPES).join(", ")}`, at);
}

function readSizes(reader: JsonReader, most: number): number[] {
  const sizes: number[] = [];
  reader.items((at) => {
    if (sizes.length === most) throw new JsonFault(`at most ${most} numbers are allowed here`, at);
    sizes.push(reader.size());
  });
  return sizes;
}

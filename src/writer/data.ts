/** Tensor data on its way into a file, in whatever form it was given. */
import { types } from "node:util";
import { GgufError, type GgufErrorSubject, invalidArgType } from "../errors";
import type { GgmlType } from "../types";
import { PIECE_BYTES } from "./layout";

/** Bytes in pieces of any size. */
export type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * The data of a tensor: its bytes as they are stored, whatever its type; a typed array of the type's own elements
 * (`Float32Array` for F32, `Uint16Array` of bits for F16 and BF16, `Int8Array` for I8 ...); or the bytes piece by
 * piece, from an iterable, an asynchronous iterable or a stream, or from a function that makes one, which is called
 * each time the file is written.
 */
export type TensorData =
  | Uint8Array
  | ArrayBuffer
  | NodeJS.TypedArray
  | Chunks
  | (() => Chunks | Promise<Chunks>);

/** The typed arrays that hold the elements of a type, besides bytes, which hold any. */
const ARRAYS: Partial<Record<GgmlType, readonly string[]>> = {
  F32: ["Float32Array"],
  F64: ["Float64Array"],
  F16: ["Uint16Array", "Float16Array"],
  BF16: ["Uint16Array"],
  I8: ["Int8Array"],
  I16: ["Int16Array"],
  I32: ["Int32Array"],
  I64: ["BigInt64Array"],
};

/** What {@link checkData} makes of tensor data. */
export type CheckedData = Uint8Array | Exclude<TensorData, ArrayBuffer | NodeJS.TypedArray>;

/** Checks data for a tensor of `type`; what is in memory is seen as bytes, and has to be `byteLength` long. */
export function checkData(
  data: TensorData,
  type: GgmlType,
  byteLength: number,
  subject: GgufErrorSubject,
): CheckedData {
  const bytes = bytesOf(data, type);
  if (bytes !== undefined) {
    if (bytes.length !== byteLength) throw wrongLength(bytes.length, byteLength, subject);
    return bytes;
  }
  if (typeof data === "function" || (typeof data === "object" && data !== null && isChunks(data))) {
    return data as Chunks | (() => Chunks);
  }
  const own = ARRAYS[type] === undefined ? "" : `, ${ARRAYS[type].join(", ")}`;
  throw invalidArgType(
    "data",
    `bytes (Uint8Array${own} for type ${type}), an iterable of them, or a function`,
    data,
  );
}

function bytesOf(data: TensorData, type: GgmlType): Uint8Array | undefined {
  if (types.isAnyArrayBuffer(data)) return new Uint8Array(data);
  if (types.isUint8Array(data)) return data;
  if (!types.isTypedArray(data) || !ARRAYS[type]?.includes(data[Symbol.toStringTag])) return undefined;
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function isChunks(data: object): data is Chunks {
  return !types.isTypedArray(data) && (Symbol.asyncIterator in data || Symbol.iterator in data);
}

/**
 * The data in pieces; throws ERR_GGUF_RANGE as soon as they are more than `byteLength` bytes, or once they are less.
 * Never holds more than one piece of what is given piece by piece.
 */
export async function* dataPieces(
  data: CheckedData,
  byteLength: number,
  subject: GgufErrorSubject,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (types.isUint8Array(data)) {
    yield* slices(data);
    return;
  }
  let length = 0;
  for await (const piece of typeof data === "function" ? await data() : data) {
    if (!types.isUint8Array(piece)) throw invalidArgType("data", "made of instances of Uint8Array", piece);
    length += piece.length;
    if (length > byteLength) throw wrongLength(`at least ${length}`, byteLength, subject);
    yield* slices(piece);
  }
  if (length < byteLength) throw wrongLength(length, byteLength, subject);
}

function* slices(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

function wrongLength(found: number | string, expected: number, subject: GgufErrorSubject): GgufError {
  const detail = `its data are ${found} bytes, its type and shape take ${expected}`;
  return new GgufError("ERR_GGUF_RANGE", detail, subject);
}

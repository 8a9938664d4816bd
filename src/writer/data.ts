/** Tensor data on its way into a file, in whatever form it was given. */
import { types } from "node:util";
import type { HalfArray } from "../decode/options";
import { GgufError, invalidArgType } from "../errors";
import type { NumericArray } from "../file/metadata-values";
import type { GgmlType } from "../types";
import { PIECE_BYTES } from "./layout";

/** Bytes in pieces of any size. */
export type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** Every typed array; `NodeJS.TypedArray` would ask callers for @types/node. @inline */
type TypedArray = NumericArray | Uint8ClampedArray | HalfArray;

/**
 * The bytes of a tensor: as they are stored, whatever its type; a typed array of the type's own elements
 * (`Float32Array` for F32, `Uint16Array` of bits for F16 and BF16, `Int8Array` for I8 ...); or the bytes piece by
 * piece, from an iterable, an asynchronous iterable or a stream.
 */
export type TensorBytes = Uint8Array | ArrayBuffer | TypedArray | Chunks;

/** The data of a tensor: its bytes, or a function that returns them and is called each time the file is written. */
export type TensorData = TensorBytes | (() => TensorBytes | Promise<TensorBytes>);

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

/** The tensor that data is for. */
export interface DataTarget {
  readonly name: string;
  readonly type: GgmlType;
  readonly byteLength: number;
}

/** Data that was checked, as far as that can be done before it is read. */
export type CheckedData = CheckedBytes | (() => Promise<CheckedBytes>);

type CheckedBytes = Uint8Array | Chunks;

/** Checks data for a tensor; what is in memory is taken as bytes, and must have the right length. */
export function checkData(data: TensorData, target: DataTarget): CheckedData {
  if (typeof data === "function") {
    return async () => checkBytes(await data(), target, (bytes) => `a function that returns ${bytes}`);
  }
  return checkBytes(data, target, (bytes) => `${bytes}, or a function that returns them`);
}

function checkBytes(
  data: TensorBytes,
  target: DataTarget,
  expected: (bytes: string) => string,
): CheckedBytes {
  const { type } = target;
  const bytes = bytesOf(data, type);
  if (bytes !== undefined) {
    checkLength(bytes.length, target);
    return bytes;
  }
  if (typeof data === "object" && data !== null && isChunks(data)) {
    if (Array.isArray(data)) {
      const length = data.reduce((sum: number, piece) => sum + checkPiece(piece, target).length, 0);
      checkLength(length, target);
    }
    // A stream may fail before it is read. Reading it throws the error; until then, a listener keeps the process alive.
    if ("on" in data && typeof data.on === "function") data.on("error", () => undefined);
    return data;
  }
  const own = ARRAYS[type] === undefined ? "" : `, ${ARRAYS[type].join(", ")}`;
  throw wrongData(expected(`bytes (Uint8Array${own} for type ${type}) or an iterable of them`), data, target);
}

function checkPiece(piece: unknown, target: DataTarget): Uint8Array {
  if (!types.isUint8Array(piece)) throw wrongData("made of instances of Uint8Array", piece, target);
  return piece;
}

function checkLength(length: number, target: DataTarget): void {
  if (length !== target.byteLength) throw wrongLength(length, target);
}

function bytesOf(data: unknown, type: GgmlType): Uint8Array | undefined {
  if (types.isAnyArrayBuffer(data)) return new Uint8Array(data);
  if (types.isUint8Array(data)) return data;
  if (!types.isTypedArray(data) || !ARRAYS[type]?.includes(data[Symbol.toStringTag])) return undefined;
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function isChunks(data: object): data is Chunks {
  return !types.isTypedArray(data) && (Symbol.asyncIterator in data || Symbol.iterator in data);
}

/**
 * The data in pieces; throws ERR_GGUF_RANGE as soon as they are more bytes than the tensor takes, or once they are less.
 * Never holds more than one piece of what is given piece by piece.
 */
export async function* dataPieces(
  data: CheckedData,
  target: DataTarget,
): AsyncGenerator<Uint8Array, void, undefined> {
  const bytes = typeof data === "function" ? await data() : data;
  const pieces = types.isUint8Array(bytes) ? [bytes] : bytes;
  // What is counted is what is handed on: memory can be taken away or made smaller since it was given.
  let length = 0;
  for await (const piece of pieces) {
    for (const slice of slices(checkPiece(piece, target))) {
      length += slice.length;
      if (length > target.byteLength) throw wrongLength(`at least ${length}`, target);
      yield slice;
    }
  }
  checkLength(length, target);
}

function* slices(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

function wrongLength(found: number | string, { name, byteLength }: DataTarget): GgufError {
  const detail = `its data are ${found} bytes, its type and shape take ${byteLength}`;
  return new GgufError("ERR_GGUF_RANGE", detail, { tensor: name });
}

function wrongData(expected: string, found: unknown, { name }: DataTarget): TypeError {
  return invalidArgType("data", `${expected}, for tensor '${name}'`, found);
}

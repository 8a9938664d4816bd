/** Tensor data on its way into a file, in whatever form it was given. */
import { errorAbout, GgufError, invalidArgType } from "../base/errors";
import type { NumericArray } from "../base/metadata-values";
import type { HalfArray } from "../base/options";
import {
  isAnyArrayBuffer,
  isFloat32Array,
  isTypedArray,
  isUint8Array,
  memoryAs,
  plain,
  typedArrayName,
} from "../base/typed-arrays";
import { type GgmlType, ggmlTypes } from "../base/types";
import { PIECE_BYTES } from "../layout/layout";
import { isQuantizable, quantizableTypes, quantize } from "../quantize/quantize";
import type { QuantizableType } from "../quantize/request";

/** Bytes in pieces of any size; or numbers, for a {@link QuantizableType}, in pieces of whole blocks. */
export type Chunks = Iterable<Uint8Array | Float32Array> | AsyncIterable<Uint8Array | Float32Array>;

/** Every typed array; `NodeJS.TypedArray` would ask callers for @types/node. @inline */
type TypedArray = NumericArray | Uint8ClampedArray | HalfArray;

/**
 * The data of a tensor: bytes as they are stored, whatever its type; a typed array of the type's own elements
 * (`Float32Array` for F32, `Uint16Array` of bits for F16 and BF16, `Int8Array` for I8 ...); numbers in a `Float32Array`,
 * which become blocks of a {@link QuantizableType} as by {@link quantizeSync}; or one of these piece by piece, from an
 * iterable, an asynchronous iterable or a stream.
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

type CheckedBytes = Piece | Chunks;

/** Bytes, or numbers that are to become blocks, in arrays of the language's own classes. */
type Piece = Uint8Array | Float32Array;

/** The most numbers that become blocks at a time: well below a millisecond of work. */
const PIECE_NUMBERS = 256 << 10;

/** Checks data for a tensor; what is in memory is taken as bytes, and must have the right length. */
export function checkData(data: TensorData, target: DataTarget): CheckedData {
  if (typeof data === "function") {
    return async () => checkBytes(await data(), target, (bytes) => `a function that returns ${bytes}`);
  }
  return checkBytes(data, target, (bytes) => `${bytes}, or a function that returns them`);
}

function checkBytes(data: TensorBytes, target: DataTarget, expected: (bytes: string) => string): CheckedBytes {
  const { type } = target;
  const piece = pieceOf(data, target);
  if (piece !== undefined) {
    checkLength(byteLengthOf(piece, target), target);
    return piece;
  }
  if (typeof data === "object" && data !== null && isChunks(data)) {
    if (Array.isArray(data)) {
      const length = data.reduce((sum: number, piece) => sum + byteLengthOf(checkPiece(piece, target), target), 0);
      checkLength(length, target);
    }
    // A stream may fail before it is read. Reading it throws the error; until then, a listener keeps the process alive.
    if ("on" in data && typeof data.on === "function") data.on("error", () => undefined);
    return data;
  }
  const own = ARRAYS[type]?.filter((name) => name !== "Float32Array") ?? [];
  if (isQuantizable(type)) own.push("Float32Array");
  else if (isFloat32Array(data)) throw unquantizable(data, target);
  const arrays = ["Uint8Array", ...own].join(", ");
  throw wrongData(expected(`bytes (${arrays} for type ${type}) or an iterable of them`), data, target);
}

function unquantizable(data: unknown, target: DataTarget): TypeError {
  const { type } = target;
  const reason = `(Uint8Array for type ${type}): numbers can be given for ${quantizableTypes().join(", ")}`;
  return wrongData(`bytes ${reason}`, data, target);
}

function checkPiece(data: unknown, target: DataTarget): Piece {
  const piece = isTypedArray(data) ? pieceOf(data, target) : undefined;
  if (piece === undefined || !(isUint8Array(data) || isFloat32Array(data))) {
    const numbers = isQuantizable(target.type) ? " or Float32Array" : "";
    throw wrongData(`made of instances of Uint8Array${numbers}`, data, target);
  }
  return piece;
}

/** The bytes that a piece takes in the file. */
function byteLengthOf(piece: Piece, { name, type }: DataTarget): number {
  if (isUint8Array(piece)) return piece.length;
  const { blockSize, typeSize } = ggmlTypes[type];
  if (piece.length % blockSize !== 0) {
    const detail = `its data has a piece of ${piece.length} numbers, which are not whole ${type} blocks of ${blockSize}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, { tensor: name });
  }
  return (piece.length / blockSize) * typeSize;
}

function checkLength(length: number, target: DataTarget): void {
  if (length !== target.byteLength) throw wrongLength(length, target);
}

function pieceOf(data: unknown, { type }: DataTarget): Piece | undefined {
  if (isAnyArrayBuffer(data)) return new Uint8Array(data);
  if (isUint8Array(data)) return plain(data);
  if (isFloat32Array(data) && type !== "F32" && isQuantizable(type)) return plain(data);
  if (!isTypedArray(data) || !ARRAYS[type]?.includes(typedArrayName(data) as string)) return undefined;
  return memoryAs(Uint8Array, data);
}

function isChunks(data: object): data is Chunks {
  return !isTypedArray(data) && (Symbol.asyncIterator in data || Symbol.iterator in data);
}

/**
 * The data in pieces; throws ERR_GGUF_RANGE as soon as they are more bytes than the tensor takes, or once they are less.
 * Never holds more than one piece of what is given piece by piece.
 */
export async function* dataPieces(data: CheckedData, target: DataTarget): AsyncGenerator<Uint8Array, void, undefined> {
  const bytes = typeof data === "function" ? await data() : data;
  const pieces = isTypedArray(bytes) ? [bytes] : bytes;
  // What is counted is what is handed on: memory can be taken away or made smaller since it was given.
  let length = 0;
  for await (const piece of pieces) {
    for await (const slice of slices(checkPiece(piece, target), target)) {
      length += slice.length;
      if (length > target.byteLength) throw wrongLength(`at least ${length}`, target);
      yield slice;
    }
  }
  checkLength(length, target);
}

async function* slices(piece: Piece, target: DataTarget): AsyncGenerator<Uint8Array, void, undefined> {
  if (isUint8Array(piece)) {
    for (let at = 0; at < piece.length; at += PIECE_BYTES) yield piece.subarray(at, at + PIECE_BYTES);
    return;
  }
  byteLengthOf(piece, target);
  for (let at = 0; at < piece.length; at += PIECE_NUMBERS) {
    const part = piece.subarray(at, at + PIECE_NUMBERS);
    try {
      yield await quantize(target.type as QuantizableType, part);
    } catch (error) {
      const where = piece.length > PIECE_NUMBERS ? `of its numbers from ${at} on: ` : "";
      throw error instanceof GgufError ? errorAbout(error, { tensor: target.name }, where) : error;
    }
  }
}

function wrongLength(found: number | string, { name, byteLength }: DataTarget): GgufError {
  const detail = `its data are ${found} bytes, its type and shape take ${byteLength}`;
  return new GgufError("ERR_GGUF_RANGE", detail, { tensor: name });
}

function wrongData(expected: string, found: unknown, { name }: DataTarget): TypeError {
  return invalidArgType("data", `${expected}, for tensor '${name}'`, found);
}

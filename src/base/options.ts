/** The public options of all functions that turn weights into numbers. */
import type { NumericArray } from "./metadata-values";

/** The output type of weights: binary32, or the bits of binary16 or bfloat16. */
export type DType = "f32" | "f16" | "bf16";

/** `Float16Array`, if the TypeScript library in use declares it. */
export type HalfArray = typeof globalThis extends { Float16Array: { prototype: infer A } } ? A : never;

// The return type of `of` is Float32Array<ArrayBuffer> from TypeScript 5.7 on, which has a different type for
// arrays over shared memory. In older versions it is Float32Array, without a type argument.
type Floats = ReturnType<Float32ArrayConstructor["of"]>;
type Bits = ReturnType<Uint16ArrayConstructor["of"]>;

/** Bytes in memory that is not shared: `Uint8Array<ArrayBuffer>`, from TypeScript 5.7 on. */
export type OwnBytes = ReturnType<Uint8ArrayConstructor["of"]>;

interface ResultArrays {
  f32: Floats;
  f16: Bits;
  bf16: Bits;
}
interface OutArrays {
  f32: Float32Array;
  f16: Uint16Array | HalfArray;
  bf16: Uint16Array;
}

/**
 * The array that is made for a {@link DType} if `out` is not given: `Float32Array` for f32, `Uint16Array` of
 * bits for f16 and bf16. It is over an `ArrayBuffer`; from version 5.7 on, TypeScript distinguishes that from
 * a `SharedArrayBuffer`.
 */
export type Dequantized<D extends DType = DType> = ResultArrays[D];

/**
 * An output array: `Float32Array` for f32, `Uint16Array` of bits for f16 and bf16; for f16 also
 * `Float16Array`, if the runtime has it.
 */
export type OutArray<D extends DType = DType> = OutArrays[D];

/**
 * `A`, which a call infers from its `out` alone: not from where its result is used, such as `new Blob([result])`, which
 * would make it an array over memory of any kind.
 */
export type Returned<A> = [A][A extends unknown ? 0 : never];

/** The part of a tensor to dequantize, and the output. */
export interface DequantizeOptions<D extends DType = DType, A extends OutArray<D> = OutArray<D>> {
  /**
   * Default `"f32"`. For `"f16"` and `"bf16"`, that result is rounded to nearest even and returned as bits.
   */
  dtype?: D | undefined;
  /** First element, a multiple of the type's block size; default 0. */
  start?: number | undefined;
  /** One past the last element, a multiple of the type's block size; default the end of the tensor. */
  end?: number | undefined;
  /** Filled and returned; exactly `end - start` long. May be backed by a SharedArrayBuffer. */
  out?: A | undefined;
}

/** Options of `rows` and `rowsSync`. */
export interface RowsOptions<D extends DType = DType, A extends OutArray<D> = OutArray<D>> {
  /** Default `"f32"`. */
  dtype?: D | undefined;
  /** Filled and returned; exactly `indexes.length * shape[0]` long. May be backed by a SharedArrayBuffer. */
  out?: A | undefined;
}

/** Blocks in memory: their bytes, in a typed array of any kind, such as a cache of F32 or F16 numbers. */
export type BlockArray = NumericArray;

/** What the vectors of a product are rounded to: nothing, or 8 bits with a scale for every 32 numbers. */
export type Activations = "f32" | "int8";

/** How products are made. */
export interface ActivationOptions {
  /**
   * Default `"f32"`: the numbers of `x` as they are. With `"int8"`, each 32 of them are rounded to multiples of 1/127 of
   * the largest, and only integers are multiplied: about twice as fast, several times in WebAssembly. Their sums are exact,
   * so that the bits are as independent of the machine as those of `"f32"`; the rounding moves a number by up to 1/254 of
   * the largest of its 32. For types that store plain numbers, such as F16, both are the same.
   */
  activations?: Activations | undefined;
}

/** What to do with products. Each option is one more rounded operation, in this order. */
export interface ProductResultOptions {
  /** Products are multiplied with it, as binary32: a matrix's second scale, or the share of an expert. Default 1. */
  factor?: number | undefined;
  /** A number for each multiplied row, which is added to its products. It is copied first. Default: none. */
  bias?: Float32Array | undefined;
  /** Adds the result to the content of `out`, which must be given. Default false: replaces it. */
  accumulate?: boolean | undefined;
}

/** What part of a matrix to multiply, and into what. */
export interface ProductOptions<A extends Float32Array = Float32Array> extends ActivationOptions, ProductResultOptions {
  /**
   * Numbers of a row, the product of one or more leading dimensions; the other dimensions count rows. Default `shape[0]`. For
   * a convolution's weights of shape [14, 14, 3, 128] it is 588.
   */
  columns?: number | undefined;
  /** First row; default 0. */
  start?: number | undefined;
  /** One past the last row; default all rows. */
  end?: number | undefined;
  /** Filled and returned; exactly n * (end - start) long. It may overlap `x`, and be backed by a SharedArrayBuffer. */
  out?: A | undefined;
}

/** How many threads work. */
export interface ThreadOptions {
  /**
   * The most threads that work at a time: 1 or more; for synchronous functions, the calling one included. Default: as many
   * as help, up to those that can run at once. Small work stays on the calling thread. WebAssembly has no other one.
   */
  threads?: number | undefined;
}

/** Options of products of all rows of some blocks. */
export interface BlockProductOptions<A extends Float32Array = Float32Array>
  extends ActivationOptions,
    ProductResultOptions {
  /** Filled and returned; exactly n times the rows long. It may overlap `x`, but not `blocks`. */
  out?: A | undefined;
}

/** The part of a tensor's stored bytes to read. */
export interface ReadOptions {
  /** First element, a multiple of the type's block size; default 0. */
  start?: number | undefined;
  /** One past the last element, a multiple of the type's block size; default the end of the tensor. */
  end?: number | undefined;
  /** Aborting makes the promise reject with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Additional options of asynchronous work. */
export interface AsyncOptions extends ThreadOptions {
  /** Aborting makes the promise reject with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called from time to time on the main thread with the number of finished elements and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** What can be quantized, and checked requests for it, for the addon and the reference alike. */
import { checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType } from "../base/errors";
import { isFloat32Array, isUint8Array, lengthOf } from "../base/typed-arrays";
import { type GgmlTypeInfo, ggmlTypes, isGgmlType, meantType } from "../base/types";

/**
 * A tensor type that {@link quantizeSync} makes blocks of: those of single numbers, and those that ggml rounds to without
 * weights of importance.
 */
export type QuantizableType = "F32" | "F16" | "BF16" | "Q8_0" | "Q4_0" | "Q4_1" | "Q5_0" | "Q5_1";

const QUANTIZABLE: readonly string[] = [
  "F32",
  "F16",
  "BF16",
  "Q8_0",
  "Q4_0",
  "Q4_1",
  "Q5_0",
  "Q5_1",
] satisfies QuantizableType[];

/** Options of {@link quantizeSync}. */
export interface QuantizeOptions<A extends Uint8Array = Uint8Array> {
  /** Filled and returned; exactly as long as the blocks. It must not overlap the numbers. */
  out?: A | undefined;
}

const QUANTIZE_OPTIONS: OptionNames<QuantizeOptions> = { out: true };

/** A checked request. */
export interface QuantizeRequest {
  readonly type: QuantizableType;
  readonly info: GgmlTypeInfo;
  readonly values: Float32Array;
  readonly out: Uint8Array;
}

export function isQuantizable(type: string): type is QuantizableType {
  return QUANTIZABLE.includes(type);
}

/** The types as a message lists them. */
export const quantizableTypes: string = QUANTIZABLE.join(", ");

/** @throws TypeError, {@link GgufError} */
export function checkQuantize(type: unknown, values: unknown, options: unknown): QuantizeRequest {
  if (typeof type !== "string") throw invalidArgType("type", "of type string", type);
  if (!isQuantizable(type)) {
    const detail = isGgmlType(type)
      ? `cannot make blocks of the tensor type ${type}, only of ${quantizableTypes}`
      : `cannot make blocks of the tensor type ${type}${meantType(type)}`;
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail);
  }
  if (!isFloat32Array(values)) throw invalidArgType("values", "an instance of Float32Array", values);
  const { out } = checkOptions(options as QuantizeOptions | undefined, QUANTIZE_OPTIONS);
  const info = ggmlTypes[type];
  const { blockSize, typeSize } = info;
  const count = lengthOf(values);
  if (count % blockSize !== 0) {
    const detail = `${count} numbers are not whole ${type} blocks, which have ${blockSize}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  const byteLength = (count / blockSize) * typeSize;
  if (out === undefined) return { type, info, values, out: newBytes(byteLength) };
  if (!isUint8Array(out)) throw invalidArgType("options.out", "an instance of Uint8Array", out);
  const found = lengthOf(out);
  if (found !== byteLength) {
    const detail = `options.out has ${found} bytes, but the blocks have ${byteLength}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  return { type, info, values, out };
}

function newBytes(byteLength: number): Uint8Array {
  try {
    return new Uint8Array(byteLength);
  } catch (cause) {
    const detail = `there is no memory for blocks of ${byteLength} bytes: quantize less at a time`;
    throw new GgufError("ERR_GGUF_OUT_OF_MEMORY", detail, { cause });
  }
}

/** What the addon can do: the types that it has kernels for, its numbers for output types. */

import { type NativeDType, native } from "../backend/native";
import { GgufError, type GgufErrorSubject } from "../base/errors";
import type { DType } from "../base/options";
import { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType, meantType } from "../base/types";
import { unsupportedType } from "./request";

const DTYPE_NUMBERS: Record<DType, NativeDType> = { f32: 0, f16: 1, bf16: 2 };

/** The numbers of the types that there are kernels for. */
let supported: ReadonlySet<number> | undefined;

/** The row of a tensor's type; throws ERR_GGUF_UNSUPPORTED_TYPE if it is unknown or has no kernel. */
export function checkSupported(type: GgmlType | `unknown(${number})`, subject?: GgufErrorSubject): GgmlTypeInfo {
  if (!isGgmlType(type)) {
    const detail = `the size of its type, ${type}, is unknown, so its data cannot be read${meantType(type)}`;
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, subject);
  }
  const info = ggmlTypes[type];
  supported ??= new Set(native.formats().map(({ id }) => id));
  if (!supported.has(info.id)) throw unsupportedType(type, subject);
  return info;
}

export function dtypeNumber(dtype: DType): NativeDType {
  return DTYPE_NUMBERS[dtype];
}

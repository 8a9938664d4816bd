/**
 * The tests' own GGUF writer: metadata of every type, tensors from bytes, versions 1 to 3, both byte orders. Written
 * against the format, not against the reader it tests; it writes what it is told, so it can also write nonsense.
 */
import { type ByteOrder, ByteWriter, type Version } from "./byte-writer";

export const VALUE_TYPES = [
  "uint8",
  "int8",
  "uint16",
  "int16",
  "uint32",
  "int32",
  "float32",
  "bool",
  "string",
  "array",
  "uint64",
  "int64",
  "float64",
] as const;
export type ValueType = (typeof VALUE_TYPES)[number];

/** A metadata value with its declared type. Elements of an array of arrays are themselves such values. */
export type TypedValue =
  | { type: Exclude<ValueType, "array">; value: Scalar }
  | { type: "array"; elementType: ValueType; value: readonly (Scalar | TypedValue)[] };
export type Scalar = number | bigint | boolean | string | Uint8Array;

export interface TensorSpec {
  name: string | Uint8Array;
  /** The number in the file. */
  type: number;
  shape: readonly (number | bigint)[];
  bytes: Uint8Array;
}

export interface GgufSpec {
  version?: Version;
  byteOrder?: ByteOrder;
  /** Written as `general.alignment` too, where it is given. */
  alignment?: number;
  metadata?: readonly (readonly [string | Uint8Array, TypedValue])[];
  tensors?: readonly TensorSpec[];
}

const scalar =
  (type: Exclude<ValueType, "array">) =>
  (value: Scalar): TypedValue => ({ type, value });
export const u8 = scalar("uint8");
export const u16 = scalar("uint16");
export const u32 = scalar("uint32");
export const i32 = scalar("int32");
export const u64 = scalar("uint64");
export const i64 = scalar("int64");
export const f32 = scalar("float32");
export const f64 = scalar("float64");
export const bool = scalar("bool");
export const str = scalar("string");
export function arr(elementType: ValueType, value: Iterable<Scalar | TypedValue>): TypedValue {
  return { type: "array", elementType, value: [...value] };
}

export function valueTypeNumber(type: ValueType): number {
  return VALUE_TYPES.indexOf(type);
}

/** The keys of shard `no` of a split model. */
export function splitKeys(no: number, count: number, tensors: number): [string, TypedValue][] {
  return [
    ["split.no", u16(no)],
    ["split.count", u16(count)],
    ["split.tensors.count", i32(tensors)],
  ];
}

/** Builds a GGUF file in memory. */
export function writeGguf(spec: GgufSpec = {}): Uint8Array {
  const { version = 3, byteOrder = "little", alignment, tensors = [] } = spec;
  const metadata = [...(spec.metadata ?? [])];
  if (alignment !== undefined) metadata.push(["general.alignment", u32(alignment)]);
  const writer = new ByteWriter(byteOrder, version);
  writer.bytes(Buffer.from("GGUF")).u32(version).count(tensors.length).count(metadata.length);
  for (const [key, value] of metadata) {
    writer.string(key).u32(valueTypeNumber(value.type));
    writeValue(writer, value);
  }
  const align = alignment ?? 32;
  let offset = 0;
  for (const tensor of tensors) {
    writeTensorInfo(writer, tensor, offset);
    offset += Math.ceil(tensor.bytes.length / align) * align;
  }
  for (const { bytes } of tensors) writer.align(align).bytes(bytes);
  if (tensors.length === 0) writer.align(align);
  return writer.done();
}

/** One entry of the tensor directory; `offset` counts from the start of the tensor data. */
export function writeTensorInfo(writer: ByteWriter, tensor: Omit<TensorSpec, "bytes">, offset: number | bigint) {
  writer.string(tensor.name).u32(tensor.shape.length);
  for (const dim of tensor.shape) writer.count(dim);
  writer.u32(tensor.type).u64(offset);
}

export function writeValue(writer: ByteWriter, value: TypedValue): void {
  if (value.type !== "array") {
    writeScalar(writer, value.type, value.value);
    return;
  }
  writer.u32(valueTypeNumber(value.elementType)).count(value.value.length);
  for (const element of value.value) {
    if (value.elementType === "array") writeValue(writer, element as TypedValue);
    else writeScalar(writer, value.elementType, element as Scalar);
  }
}

/** The method of the writer for each type. */
const METHODS = {
  uint8: "u8",
  int8: "i8",
  uint16: "u16",
  int16: "i16",
  uint32: "u32",
  int32: "i32",
  float32: "f32",
  bool: "u8",
  string: "string",
  uint64: "u64",
  int64: "i64",
  float64: "f64",
} as const satisfies Record<Exclude<ValueType, "array">, keyof ByteWriter>;

function writeScalar(writer: ByteWriter, type: Exclude<ValueType, "array">, value: Scalar): void {
  writer[METHODS[type]]((type === "bool" ? Number(value) : value) as never);
}

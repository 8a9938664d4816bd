/** Random GGUF files for property tests, together with what a reader must find in them. */
import fc from "fast-check";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import {
  type GgufSpec,
  type Scalar,
  type TensorSpec,
  type TypedValue,
  VALUE_TYPES,
  type ValueType,
} from "./gguf-writer";
import { ALL_TYPES } from "./golden";

type ScalarType = Exclude<ValueType, "array">;
const SCALAR_TYPES = VALUE_TYPES.filter((type): type is ScalarType => type !== "array");

const text = fc.string({ unit: "binary", maxLength: 20 });
const scalars: Record<ScalarType, fc.Arbitrary<Scalar>> = {
  uint8: fc.integer({ min: 0, max: 255 }),
  int8: fc.integer({ min: -128, max: 127 }),
  uint16: fc.integer({ min: 0, max: 65535 }),
  int16: fc.integer({ min: -32768, max: 32767 }),
  uint32: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  int32: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  float32: fc.float(),
  bool: fc.boolean(),
  string: text,
  uint64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  int64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  float64: fc.double(),
};

const { value } = fc.letrec<{ value: TypedValue; array: TypedValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(...SCALAR_TYPES).chain((type) => scalars[type].map((value): TypedValue => ({ type, value }))),
    tie("array"),
  ),
  array: fc.oneof(
    { depthSize: "small" },
    fc
      .constantFrom(...SCALAR_TYPES)
      .chain((elementType) =>
        fc.array(scalars[elementType]).map((value): TypedValue => ({ type: "array", elementType, value })),
      ),
    fc
      .array(tie("array"), { maxLength: 4 })
      .map((value): TypedValue => ({ type: "array", elementType: "array", value: value as TypedValue[] })),
  ),
}));

/** Any metadata value. */
export const typedValue = value;

const tensor = fc
  .record({
    name: fc.string({ unit: "binary", maxLength: 30 }),
    type: fc.constantFrom(...ALL_TYPES),
    blocksPerRow: fc.integer({ min: 0, max: 3 }),
    rest: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 }),
    fill: fc.uint8Array({ minLength: 1, maxLength: 64 }),
  })
  .map(({ name, type, blocksPerRow, rest, fill }): TensorSpec => {
    const { id, blockSize, typeSize } = ggmlTypes[type];
    const rows = rest.reduce((product, dim) => product * dim, 1);
    const bytes = Uint8Array.from({ length: blocksPerRow * rows * typeSize }, (_, i) => fill[i % fill.length]! + i);
    return { name, type: id, shape: [blocksPerRow * blockSize, ...rest], bytes };
  });

/** Any file that a reader must accept. */
export const ggufSpec: fc.Arbitrary<Required<Omit<GgufSpec, "alignment">> & { alignment: number | undefined }> =
  fc.record({
    version: fc.constantFrom(1 as const, 2 as const, 3 as const),
    byteOrder: fc.constantFrom("little" as const, "big" as const),
    alignment: fc.constantFrom(undefined, 1, 8, 32, 64, 4096),
    metadata: fc.uniqueArray(
      fc.tuple(
        fc.string({ unit: "binary", minLength: 1, maxLength: 30 }).filter((key) => key !== "general.alignment"),
        typedValue,
      ),
      { selector: ([key]) => key, maxLength: 10 },
    ),
    tensors: fc.uniqueArray(tensor, { selector: ({ name }) => name, maxLength: 6 }),
  });

const ARRAYS = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float32: Float32Array,
  float64: Float64Array,
  uint64: BigUint64Array,
  int64: BigInt64Array,
};

/** What a value is decoded to. */
export function decoded(value: TypedValue): unknown {
  if (value.type !== "array") return value.type === "float32" ? Math.fround(value.value as number) : value.value;
  const { elementType } = value;
  if (elementType === "array") return value.value.map((element) => decoded(element as TypedValue));
  if (elementType === "string" || elementType === "bool") return value.value;
  return new (ARRAYS[elementType] as new (values: unknown) => unknown)(value.value);
}

/** The name of a tensor type by its number. */
export function nameOfType(id: number): GgmlType {
  return Object.entries(ggmlTypes).find(([, info]) => info.id === id)![0] as GgmlType;
}

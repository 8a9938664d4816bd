/** The types of metadata values: as they are declared in the file, and what they are in JavaScript. */

/** A typed array of any of the element types. */
export type NumericArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigUint64Array
  | BigInt64Array;

// What `of` returns: over an ArrayBuffer, from TypeScript 5.7 on, which knows the difference.
type ArrayOf<C extends { of(...values: never[]): unknown }> = ReturnType<C["of"]>;

/**
 * A typed array in memory that is not shared, as arrays of numbers are decoded: each element type to the one that
 * matches.
 */
export type OwnNumericArray =
  | ArrayOf<Uint8ArrayConstructor>
  | ArrayOf<Int8ArrayConstructor>
  | ArrayOf<Uint16ArrayConstructor>
  | ArrayOf<Int16ArrayConstructor>
  | ArrayOf<Uint32ArrayConstructor>
  | ArrayOf<Int32ArrayConstructor>
  | ArrayOf<Float32ArrayConstructor>
  | ArrayOf<Float64ArrayConstructor>
  | ArrayOf<BigUint64ArrayConstructor>
  | ArrayOf<BigInt64ArrayConstructor>;

/**
 * A metadata value. u8 to u32, i8 to i32, f32 and f64 are numbers, u64 and i64 always bigints; arrays of numbers
 * are typed arrays, arrays of arrays are nested.
 */
export type GgufValue = number | bigint | boolean | string | OwnNumericArray | boolean[] | string[] | GgufValue[];

/** The types of metadata values, in the order of their numbers in the file. */
export const TYPE_NAMES = [
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

/** A type that metadata values are declared with in the file. */
export type GgufTypeName = (typeof TYPE_NAMES)[number];

/** Bytes of a number or bool; 0 for strings and arrays. */
export const SIZES: Record<GgufTypeName, 0 | 1 | 2 | 4 | 8> = {
  ...{ uint8: 1, int8: 1, bool: 1, uint16: 2, int16: 2, uint32: 4, int32: 4, float32: 4 },
  ...{ uint64: 8, int64: 8, float64: 8, string: 0, array: 0 },
};

/** The class of the arrays that numbers of each type make. */
export const ARRAY_CLASSES: Readonly<
  Partial<Record<GgufTypeName, { readonly name: string; new (buffer: ArrayBuffer): OwnNumericArray }>>
> = {
  ...{ uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array },
  ...{ uint32: Uint32Array, int32: Int32Array, uint64: BigUint64Array, int64: BigInt64Array },
  ...{ float32: Float32Array, float64: Float64Array },
};

/** The declared type of a metadata value. */
export type GgufValueType =
  | {
      /** The type of a single value. */
      type: Exclude<GgufTypeName, "array">;
    }
  | {
      /** An array. */
      type: "array";
      /** What every element of it is. */
      elementType: GgufTypeName;
      /** How many elements there are. */
      length: number;
    };

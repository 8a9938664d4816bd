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
export type GgufValue =
  | number
  | bigint
  | boolean
  | string
  | OwnNumericArray
  | boolean[]
  | string[]
  | GgufValue[];

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

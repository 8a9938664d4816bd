/** What test/wasm/entry.test.ts compares, in a form that JSON has. */

/** What the addon finds in a tensor. */
export interface TensorFacts {
  /** The bits of its numbers. */
  numbers: number[];
  /** Its statistics as JSON, with numbers that JSON lacks as strings. */
  stats: string;
  /** The bits of products of all its rows with {@link vectors}; absent where it has no rows of whole numbers. */
  products: number[];
  /** The same with vectors of 8 bits. */
  int8Products: number[];
}

export interface WasmInput {
  /** Where the file is. */
  url: string;
  facts: Record<string, TensorFacts>;
  metadata: string;
  /** The bits of {@link LARGE}. */
  large: number[];
  /** A folder with `model.safetensors`, and the bits of the numbers of its tensors. */
  safetensors: { url: string; numbers: Record<string, number[]> };
}

export interface WasmResult {
  /** Names of Node's globals that are there. */
  globals: string[];
  isa: string;
  /** How many threads there are, of which at most two were asked for. */
  threads: number;
  types: string[];
  /**
   * How many tensors were compared, in each way to open a file.
   */
  compared: Record<string, { compared: number }>;
  /** How many tensors the model of safetensors has, in each way to open it. */
  safetensors: number[];
  /** What was different; empty where nothing was. */
  differences: string[];
  errors: Record<string, string>;
}

/** Products that threads share: Q4_K, 1024 columns, 512 rows, 3 vectors of 8 bits. */
export const LARGE = { type: "Q4_K", columns: 1024, rows: 512, activations: "int8" } as const;

/** Three vectors for a matrix of so many columns. */
export function vectors(columns: number): Float32Array {
  return Float32Array.from({ length: 3 * columns }, (_, i) => Math.fround(Math.sin(i + 1)));
}

/** Statistics, or other values, as text. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_, item) =>
    typeof item === "number" && !Number.isFinite(item)
      ? String(item)
      : ArrayBuffer.isView(item)
        ? Array.from(item as Uint8Array)
        : item,
  );
}

export const bitsOf = ({ buffer, byteOffset, length }: Float32Array): number[] =>
  Array.from(new Uint32Array(buffer, byteOffset, length));

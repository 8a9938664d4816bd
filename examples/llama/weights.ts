/** The weights of a model, still quantized and in its file, and what adapters add to them. */
import type { GgufFile, GgufTensor, MatrixRows } from "gguf-native";

/** The file of a LoRA adapter, and how much of it is added. */
export interface Adapter {
  file: GgufFile;
  scale: number;
}

/** A matrix, or one for each expert. */
export interface Matrix {
  tensor: GgufTensor;
  columns: number;
  rows: number;
  /** What each expert multiplies. */
  experts: readonly MatrixRows[];
  /** What adapters add to the products: `factor * b (a x)`. */
  deltas: readonly { a: GgufTensor; b: GgufTensor; factor: number }[];
}

type Dimension = number | undefined;

/** The rows of a matrix of so many rows that are those of an expert. */
export const rowsOf = (rows: number, expert: number) => ({ start: expert * rows, end: (expert + 1) * rows });

/** Finds the tensors of a model by their names, and checks their shapes; a dimension that is undefined may have any length. */
export class Weights {
  readonly #file: GgufFile;
  readonly #adapters: readonly Adapter[];
  readonly #unused: Set<GgufTensor>;

  constructor(file: GgufFile, adapters: readonly Adapter[]) {
    this.#file = file;
    this.#adapters = adapters;
    const files = adapters.map((adapter) => adapter.file);
    this.#unused = new Set([file, ...files].flatMap(({ tensors }) => [...tensors.values()]));
    for (const { metadata } of files) {
      const kind = metadata.has("adapter.alora.invocation_tokens") ? "alora" : metadata.string("adapter.type");
      if (kind !== "lora") throw new Error(`an adapter must have the type lora, not ${kind ?? "(none)"}`);
      const [theirs, ours] = [metadata.architecture, file.metadata.architecture];
      if (theirs !== ours) throw new Error(`the adapter is for a ${theirs}, and the model is a ${ours}`);
    }
  }

  has(name: string): boolean {
    return this.#file.tensors.has(name);
  }

  vector(name: string, length: Dimension): Float32Array {
    return this.#use(this.#file, name, [length]).dequantizeSync();
  }

  optional(name: string, length: Dimension): Float32Array | undefined {
    return this.has(name) ? this.vector(name, length) : undefined;
  }

  /** The matrix NAME.weight and what comes with it; `experts`: how many, if it is of experts. */
  matrix(name: string, columns: number, rows?: number, ...experts: readonly number[]): Matrix {
    const tensor = this.#use(this.#file, `${name}.weight`, [columns, rows, ...experts]);
    const [, found = 1] = tensor.shape;
    const [count = 1] = experts;
    const scales = tensor.scale && this.vector(tensor.scale.name, count); // of NVFP4
    const bias = this.optional(`${name}.bias`, found);
    this.optional(`${name}.input_scale`, undefined); // for inputs in NVFP4, and these here are binary32
    // For embeddings, what is a column of other matrices of adapters is a row.
    const shapeOfA = (rank: number) => (name === "token_embd" ? [rank, found] : [columns, rank, ...experts]);
    const shapeOfB = name === "token_embd" ? [columns] : [found, ...experts];
    return {
      ...{ tensor, columns, rows: found },
      experts: Array.from({ length: count }, (_, expert) => ({
        ...{ tensor, ...rowsOf(found, expert), factor: scales?.[expert], bias },
      })),
      deltas: this.#adapters
        .filter(({ file }) => file.tensors.has(`${tensor.name}.lora_a`))
        .map(({ file, scale }) => {
          const b = this.#use(file, `${tensor.name}.lora_b`, [undefined, ...shapeOfB]);
          const [rank = 1] = b.shape;
          const a = this.#use(file, `${tensor.name}.lora_a`, shapeOfA(rank));
          const alpha = file.metadata.number("adapter.lora.alpha") ?? 0;
          return { a, b, factor: alpha === 0 ? scale : (scale * alpha) / rank };
        }),
    };
  }

  optionalMatrix(name: string, columns: number, rows: number): Matrix | undefined {
    return this.has(`${name}.weight`) ? this.matrix(name, columns, rows) : undefined;
  }

  /** @throws Error if there is a tensor that nothing asked for */
  expectAllUsed(): void {
    for (const { name } of this.#unused)
      throw new Error(`this example does not know the purpose of the tensor ${name}`);
  }

  #use(file: GgufFile, name: string, expected: readonly Dimension[]): GgufTensor {
    const tensor = file.tensor(name);
    const { shape } = tensor;
    const isSame = Array.from({ length: Math.max(shape.length, expected.length) }, (_, i) => {
      const [found = 1, wanted = i < expected.length ? found : 1] = [shape[i], expected[i]];
      return found === wanted && found > 0;
    }).every(Boolean);
    if (!isSame) {
      const wanted = expected.map((length) => length ?? "any").join(" x ");
      throw new Error(`the tensor ${name} must have the shape ${wanted}, found ${shape.join(" x ")}`);
    }
    this.#unused.delete(tensor);
    return tensor;
  }
}

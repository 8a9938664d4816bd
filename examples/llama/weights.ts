/** The weights of a model, still quantized and in its file, and their products. */
import type { GgufFile, GgufTensor } from "gguf-native";
import { add, scale } from "gguf-native/network";

/** The file of a LoRA adapter, and how much of it is added. */
export interface Adapter {
  file: GgufFile;
  scale: number;
}

/** What an adapter adds to the products of a matrix: `factor * b (a x)`. */
interface Delta {
  a: GgufTensor;
  b: GgufTensor;
  factor: number;
}

/** A matrix, or one for each expert: its tensor, and what is done to its products. */
export interface Linear {
  weight: GgufTensor;
  columns: number;
  rows: number;
  experts: number;
  /** The second scales of NVFP4 weights, one for each expert. */
  scales: Float32Array | undefined;
  bias: Float32Array | undefined;
  deltas: readonly Delta[];
}

type Dimension = number | undefined;

/** Finds the tensors of a model by their names, and checks their shapes; a dimension that is undefined may have any length. */
export class Weights {
  readonly #file: GgufFile;
  readonly #adapters: readonly Adapter[];
  readonly #unused: Set<GgufTensor>;

  constructor(file: GgufFile, adapters: readonly Adapter[]) {
    const { architecture } = file.metadata;
    for (const { metadata } of adapters.map((adapter) => adapter.file)) {
      const kind = metadata.string("adapter.type") ?? metadata.string("general.type") ?? "model";
      if (kind !== "lora" || metadata.has("adapter.alora.invocation_tokens"))
        throw new Error(`an adapter must be of the type lora, not ${kind === "lora" ? "alora" : kind}`);
      if (metadata.architecture !== architecture)
        throw new Error(`the adapter is for a ${metadata.architecture}, and the model is a ${architecture}`);
    }
    this.#file = file;
    this.#adapters = adapters;
    const files = [file, ...adapters.map((adapter) => adapter.file)];
    this.#unused = new Set(files.flatMap(({ tensors }) => [...tensors.values()]));
  }

  has(name: string): boolean {
    return this.#file.tensors.has(name);
  }

  tensor(name: string, ...shape: readonly Dimension[]): GgufTensor {
    return this.#use(this.#file, name, shape);
  }

  vector(name: string, length: Dimension): Float32Array {
    return this.tensor(name, length).dequantizeSync();
  }

  optional(name: string, length: Dimension): Float32Array | undefined {
    return this.has(name) ? this.vector(name, length) : undefined;
  }

  /** The matrix NAME.weight, or those of experts, and what comes with it. */
  linear(name: string, columns: number, rows?: number, ...experts: readonly number[]): Linear {
    const weight = this.tensor(`${name}.weight`, columns, rows, ...experts);
    const [count = 1] = experts;
    const isEmbeddings = name === "token_embd"; // what is added to these is not added to the output
    const shapeOfA = (rank: number): Dimension[] => [columns, rank, ...experts];
    const found = rows ?? (weight.shape[1] as number);
    if (this.has(`${name}.input_scale`)) this.tensor(`${name}.input_scale`, undefined); // for inputs in NVFP4
    return {
      ...{ weight, columns, rows: found, experts: count },
      scales: weight.scale && this.vector(weight.scale.name, count),
      bias: this.optional(`${name}.bias`, found),
      deltas: isEmbeddings ? [] : this.#deltas(weight.name, shapeOfA, [found, ...experts]),
    };
  }

  /** The embeddings, and what adapters add to them: there, what is a column of other matrices is a row. */
  embeddings(name: string, width: number): { embeddings: GgufTensor; deltas: readonly Delta[] } {
    const embeddings = this.tensor(name, width, undefined);
    const tokens = embeddings.shape[1];
    return { embeddings, deltas: this.#deltas(name, (rank) => [rank, tokens], [width]) };
  }

  #deltas(name: string, shapeOfA: (rank: number) => Dimension[], shapeOfB: readonly number[]): Delta[] {
    const having = this.#adapters.filter(({ file }) => file.tensors.has(`${name}.lora_a`));
    return having.map(({ file, scale: wanted }) => {
      const b = this.#use(file, `${name}.lora_b`, [undefined, ...shapeOfB]);
      const rank = b.shape[0] as number;
      const a = this.#use(file, `${name}.lora_a`, shapeOfA(rank));
      const alpha = file.metadata.number("adapter.lora.alpha") ?? 0;
      return { a, b, factor: alpha === 0 ? wanted : (wanted * alpha) / rank };
    });
  }

  /** @throws Error if there is a tensor that nothing asked for */
  expectAllUsed(): void {
    for (const { name } of this.#unused)
      throw new Error(`this example does not know the purpose of the tensor ${name}`);
  }

  #use(file: GgufFile, name: string, expected: readonly Dimension[]): GgufTensor {
    const tensor = file.tensor(name);
    const { shape } = tensor;
    const isSame = Array.from({ length: Math.max(shape.length, expected.length) }, (_, i) =>
      i < expected.length && expected[i] === undefined
        ? (shape[i] ?? 1) > 0
        : (shape[i] ?? 1) === (expected[i] ?? 1),
    ).every(Boolean);
    if (!isSame) {
      const wanted = expected.map((length) => length ?? "any").join(" x ");
      throw new Error(`the tensor ${name} must have the shape ${wanted}, found ${shape.join(" x ")}`);
    }
    this.#unused.delete(tensor);
    return tensor;
  }
}

export interface ProductOptions {
  /** `int8` (default) rounds what quantized weights are multiplied with to 8 bits, which is faster; `f32` does not. */
  activations?: "int8" | "f32" | undefined;
  /** Threads that multiply. Default: as many as help. */
  threads?: number | undefined;
}

/** A stand-in for the function of the library. */
function matmulAllSync(
  parts: readonly { tensor: GgufTensor; start: number; end: number }[],
  x: Float32Array,
  { outs, ...options }: { outs: readonly Float32Array[] } & ProductOptions,
): void {
  for (const [i, { tensor, start, end }] of parts.entries())
    tensor.matmulSync(x, { ...options, start, end, out: outs[i] });
}

/** A product with a matrix, or with that of one expert. */
export interface Product {
  linear: Linear;
  expert?: number;
}

/** The products of matrices with the vectors in `x`, one after the other, and all that belongs to them: in `outs`. */
export function multiply(
  products: readonly Product[],
  x: Float32Array,
  outs: readonly Float32Array[],
  { activations, threads }: ProductOptions,
): void {
  const rowsOf = (count: number, expert = 0) => ({ start: expert * count, end: (expert + 1) * count });
  const parts = products.map(({ linear: { weight: tensor, rows }, expert }) => ({
    ...{ tensor, ...rowsOf(rows, expert) },
  }));
  matmulAllSync(parts, x, { outs, activations, threads });
  for (const [i, { linear, expert = 0 }] of products.entries()) {
    const { rows, scales, bias, deltas } = linear;
    const out = outs[i] as Float32Array;
    if (scales !== undefined) scale(out, scales[expert] as number);
    for (const { a, b, factor } of deltas) {
      const inner = a.matmulSync(x, { ...rowsOf(b.shape[0] as number, expert), activations, threads });
      b.matmulSync(inner, {
        ...{ ...rowsOf(rows, expert), activations, threads, factor, accumulate: true, out },
      });
    }
    if (bias !== undefined) add(out, bias);
  }
}

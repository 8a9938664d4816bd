/** The weights of a model, as a forward pass uses them. */
import type { GgufFile, GgufTensor } from "gguf-native";

/** A matrix, still quantized and in its file, and what is added to its products. */
export interface Linear {
  weight: GgufTensor;
  /** The second scale of NVFP4 weights; 1 for others. */
  scale: number;
  bias: Float32Array | undefined;
}

/**
 * Finds the tensors of a model by their names. The file must stay open as long as they are used.
 */
export class Weights {
  readonly #file: GgufFile;
  readonly #unused: Set<string>;

  constructor(file: GgufFile) {
    this.#file = file;
    this.#unused = new Set(file.tensors.keys());
  }

  has(name: string): boolean {
    return this.#file.tensors.has(name);
  }

  /** @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND */
  tensor(name: string): GgufTensor {
    this.#unused.delete(name);
    return this.#file.tensor(name);
  }

  vector(name: string): Float32Array {
    return this.tensor(name).dequantizeSync();
  }

  optionalVector(name: string): Float32Array | undefined {
    return this.has(name) ? this.vector(name) : undefined;
  }

  linear(name: string): Linear {
    const weight = this.tensor(`${name}.weight`);
    this.#unused.delete(`${name}.input_scale`); // for inputs in NVFP4, and these here are binary32
    const scale = weight.scale === undefined ? 1 : this.tensor(weight.scale.name).dequantizeSync()[0]!;
    return { weight, scale, bias: this.optionalVector(`${name}.bias`) };
  }

  /** @throws Error if the model has a tensor that nothing asked for */
  expectAllUsed(): void {
    for (const name of this.#unused)
      throw new Error(`this example does not know the purpose of the tensor ${name}`);
  }
}

export interface ProductOptions {
  /**
   * `int8` (default) rounds what matrices are multiplied with to 8 bits, which is faster; `f32` does not. Weights that are
   * plain numbers, such as F16, are multiplied exactly in both cases.
   */
  activations?: "int8" | "f32" | undefined;
  /** Threads that multiply. Default: as many as help. */
  threads?: number | undefined;
}

/** The products of a matrix with the vectors in `x`, in the same layout, and its bias: in `out`, which is returned. */
export function multiply(
  { weight, scale, bias }: Linear,
  x: Float32Array,
  { activations = "int8", threads }: ProductOptions,
  out: Float32Array,
): Float32Array {
  return weight.matmulSync(x, { activations, threads, factor: scale, bias, out });
}

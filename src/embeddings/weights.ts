/** What a network reads of its model: keys and tensors, each checked when it is read, before memory is taken for it. */
import { GgufError } from "../base/errors";
import type { GgufFile } from "../file/parse";
import type { GgufTensor } from "../file/tensor";

/** Numbers of the metadata are at most that; none of a real model comes near. */
const MOST = 2 ** 24;

/** Rows of a matrix, still quantized and in their file, and what is added to their products. */
export interface Linear {
  readonly tensor: GgufTensor;
  readonly columns: number;
  readonly start: number;
  readonly end: number;
  /** The second scale of NVFP4 weights; 1 for others. */
  readonly factor: number;
  readonly bias: Float32Array | undefined;
}

/** The weight and the bias of a norm. */
export interface Norm {
  readonly weight: Float32Array;
  readonly bias: Float32Array | undefined;
}

/** The keys and tensors of a model, whose file must stay open. All methods throw a GgufError that names the key or the tensor. */
export class Weights {
  readonly #file: GgufFile;
  readonly #unused: Set<string>;

  constructor(file: GgufFile) {
    this.#file = file;
    this.#unused = new Set(file.tensors.keys());
  }

  /** A whole number from 1 on; `absent` where the model has no such key, and without it the key is required. */
  count(key: string, absent?: number): number {
    const value = this.value(key, absent);
    this.expect(Number.isInteger(value) && value >= 1 && value <= MOST, key, `a whole number from 1 to ${MOST}`, value);
    return value;
  }

  /** A number above 0, in binary32's range. */
  positive(key: string, absent?: number): number {
    const value = this.value(key, absent);
    this.expect(value > 0 && value < Number.POSITIVE_INFINITY, key, "above 0", value);
    return value;
  }

  /** The number of layers: no more than there are tensors for. */
  layerCount(): number {
    const count = this.count("block_count");
    const layers = new Set(Array.from(this.#file.tensors.keys(), (name) => /^blk\.(\d+)\./.exec(name)?.[1]));
    layers.delete(undefined);
    this.expect(count === layers.size, "block_count", `${layers.size}, as many as there are tensors for`, count);
    return count;
  }

  /** Throws unless the value, from this key or computed with it, is as `expected` says. */
  expect(isRight: boolean, key: string, expected: string, found: number): void {
    if (isRight) return;
    const { architecture } = this.#file.metadata;
    throw this.error("ERR_GGUF_INVALID", `${architecture}.${key} must be ${expected}, found ${found}`);
  }

  /** A number that may be any; `absent` where the model has no such key, and without it the key is required. */
  value(key: string, absent?: number): number {
    const { metadata } = this.#file;
    const value = metadata.arch(key) ?? absent;
    if (value !== undefined) return value;
    throw this.error("ERR_GGUF_INVALID", `its metadata has no key ${metadata.architecture}.${key}`);
  }

  /** True or false; `absent` where the model has no such key. */
  flag(key: string, absent: boolean): boolean {
    const { metadata } = this.#file;
    return metadata.boolean(`${metadata.architecture}.${key}`) ?? absent;
  }

  /** @throws GgufError for positions that are stretched, which embedders do not do */
  expectPlainRotations(): void {
    const { metadata } = this.#file;
    const key = `${metadata.architecture}.rope.scaling.type`;
    const type = metadata.string(key) ?? "none";
    if (type !== "none")
      throw this.error("ERR_GGUF_UNSUPPORTED_TYPE", `${key} is '${type}', which an embedder does not know`);
  }

  has(name: string): boolean {
    return this.#file.tensors.has(name);
  }

  /** A tensor of this shape, where a dimension that is undefined may have any length. */
  tensor(name: string, ...expected: readonly (number | undefined)[]): GgufTensor {
    const tensor = this.#file.tensor(name);
    this.#unused.delete(name);
    const { shape } = tensor;
    const lengths = Array.from({ length: Math.max(shape.length, expected.length) }, (_, i) => shape[i] ?? 1);
    const isSame = lengths.every((length, i) =>
      i < expected.length && expected[i] === undefined ? length > 0 : length === (expected[i] ?? 1),
    );
    if (isSame) return tensor;
    const wanted = expected.map((length) => length ?? "any").join(" x ");
    throw this.error("ERR_GGUF_INVALID", `must have the shape ${wanted}, found ${shape.join(" x ")}`, name);
  }

  vector(name: string, length: number): Float32Array {
    return this.tensor(name, length).dequantizeSync();
  }

  #optional(name: string, length: number): Float32Array | undefined {
    return this.has(name) ? this.vector(name, length) : undefined;
  }

  /** NAME.weight, and NAME.bias if there is one. */
  norm(name: string, length: number): Norm {
    return {
      weight: this.vector(`${name}.weight`, length),
      bias: this.#optional(`${name}.bias`, length),
    };
  }

  /** The same; undefined where the model has none of this name. */
  optionalNorm(name: string, length: number): Norm | undefined {
    return this.has(`${name}.weight`) ? this.norm(name, length) : undefined;
  }

  /** NAME.weight with its bias, if it has one, and its second scale. */
  linear(name: string, columns: number, rows?: number): Linear {
    return this.linears(name, columns, rows)[0] as Linear;
  }

  /** The same; where experts are counted, that of each. */
  linears(name: string, columns: number, rows?: number, ...experts: readonly [number?]): Linear[] {
    const tensor = this.tensor(`${name}.weight`, columns, rows, ...experts);
    const [count = 1] = experts;
    const height = tensor.elementCount / columns / count;
    this.#unused.delete(`${name}.input_scale`); // for inputs in NVFP4, and these here are binary32
    const factors = tensor.scale && this.vector(tensor.scale.name, count);
    const bias = this.#optional(`${name}.bias`, height);
    return Array.from({ length: count }, (_, i) => ({
      ...{ tensor, columns, start: i * height, end: (i + 1) * height, factor: factors?.[i] ?? 1, bias },
    }));
  }

  /** @throws GgufError if the model has a tensor that nothing asked for: its vectors would be wrong without a word */
  expectAllUsed(): void {
    for (const name of this.#unused)
      throw this.error("ERR_GGUF_UNSUPPORTED_TYPE", "an embedder does not know its purpose", name);
  }

  error(code: "ERR_GGUF_INVALID" | "ERR_GGUF_UNSUPPORTED_TYPE", detail: string, tensor?: string): GgufError {
    return new GgufError(code, detail, { path: this.#file.paths[0], tensor });
  }
}

/** Some rows of a matrix. */
export function rowsOf(linear: Linear, start: number, end: number): Linear {
  return { ...linear, start, end, bias: linear.bias?.subarray(start, end) };
}

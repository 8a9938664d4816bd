/** What a network relies on is checked once, when it is loaded, before memory is taken for it. */
import type { GgufFile } from "gguf-native";

/** Numbers of the metadata are below it; none of a real model comes near. */
const MOST = 2 ** 24;

/** Reads and checks what a model says of itself. All methods throw an Error that names the key or the tensor. */
export class Checks {
  readonly #file: GgufFile;

  constructor(file: GgufFile) {
    this.#file = file;
  }

  /** A whole number from 1 on; `absent` where the model has no such key, and without it the key is required. */
  count(key: string, absent?: number): number {
    const value = this.value(key, absent);
    if (!Number.isInteger(value) || value < 1 || value > MOST)
      throw this.#error(key, `a whole number from 1 to ${MOST}`, value);
    return value;
  }

  /** A number above 0. */
  positive(key: string, absent?: number): number {
    const value = this.value(key, absent);
    if (!(value > 0 && value < Number.POSITIVE_INFINITY)) throw this.#error(key, "above 0", value);
    return value;
  }

  /** The number of layers: no more than there are tensors for. */
  layerCount(): number {
    const count = this.count("block_count");
    const layers = new Set(Array.from(this.#file.tensors.keys(), (name) => /^blk\.(\d+)\./.exec(name)?.[1]));
    layers.delete(undefined);
    if (count !== layers.size)
      throw this.#error("block_count", `${layers.size}, as many as there are tensors for`, count);
    return count;
  }

  /** Throws unless the value, from this key or computed with it, is as `expected` says. */
  expect(isRight: boolean, key: string, expected: string, found: number): void {
    if (!isRight) throw this.#error(key, expected, found);
  }

  /** The shape of a tensor; throws unless it is this one. Where a dimension is undefined, it may have any length. */
  shape(name: string, ...expected: readonly (number | undefined)[]): readonly number[] {
    const { shape } = this.#file.tensor(name);
    const isSame = Array.from({ length: Math.max(shape.length, expected.length) }, (_, i) =>
      i < expected.length && expected[i] === undefined
        ? (shape[i] ?? 1) > 0
        : (shape[i] ?? 1) === (expected[i] ?? 1),
    ).every(Boolean);
    if (isSame) return shape;
    const wanted = expected.map((length) => length ?? "any").join(" x ");
    throw new Error(`the tensor ${name} must have the shape ${wanted}, found ${shape.join(" x ")}`);
  }

  /** The same, unless the model has no such tensor. */
  optionalShape(name: string, ...expected: readonly number[]): void {
    if (this.#file.tensors.has(name)) this.shape(name, ...expected);
  }

  /** The shapes of a matrix NAME.weight and what comes with it: its bias, and a second scale. */
  linear(name: string, columns: number, rows?: number): number {
    const [, found = 1] = this.shape(`${name}.weight`, columns, rows);
    this.optionalShape(`${name}.bias`, found);
    const { scale } = this.#file.tensor(`${name}.weight`);
    if (scale !== undefined) this.shape(scale.name, 1);
    return found;
  }

  /** A number that may be any; `absent` where the model has no such key, and without it the key is required. */
  value(key: string, absent?: number): number {
    const { metadata } = this.#file;
    const value = metadata.arch(key) ?? absent;
    if (value === undefined)
      throw new Error(`the model's metadata has no key ${metadata.architecture}.${key}`);
    return value;
  }

  #error(key: string, expected: string, found: number): Error {
    return new Error(`${this.#file.metadata.architecture}.${key} must be ${expected}, found ${found}`);
  }
}

/** A read-only map. */
import { type Inspect, inspectCustom } from "../inspect";

/** What the methods of a map return: TypeScript has had a name for it, `MapIterator`, only since version 5.6. */
export type Iterators<T> = {
  [K in "keys" | "values" | "entries"]: ReturnType<ReadonlyMap<string, T>[K]>;
};

/** The tensors of a model by name: a read-only view of a map, without a cost per tensor. */
export class TensorMap<T> implements ReadonlyMap<string, T> {
  readonly #map: ReadonlyMap<string, T>;

  constructor(map: ReadonlyMap<string, T>) {
    this.#map = map;
  }

  get size(): number {
    return this.#map.size;
  }

  get(name: string): T | undefined {
    return this.#map.get(name);
  }

  has(name: string): boolean {
    return this.#map.has(name);
  }

  keys(): Iterators<T>["keys"] {
    return this.#map.keys();
  }

  values(): Iterators<T>["values"] {
    return this.#map.values();
  }

  entries(): Iterators<T>["entries"] {
    return this.#map.entries();
  }

  [Symbol.iterator](): Iterators<T>["entries"] {
    return this.#map.entries();
  }

  forEach(callback: (tensor: T, name: string, map: ReadonlyMap<string, T>) => void, thisArg?: unknown): void {
    for (const [name, tensor] of this.#map) callback.call(thisArg, tensor, name, this);
  }

  /** @internal */
  [inspectCustom](_depth: number, options: object, inspect: Inspect): string {
    return inspect(this.#map, options).replace(/^Map/, TensorMap.name);
  }
}

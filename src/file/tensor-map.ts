/** A read-only map. */

import type { NativeTensors } from "../backend/native";
import { type Inspect, inspectCustom } from "../base/inspect";
import type { OpenFile } from "./handle";
import { NameList, type Page, TENSORS } from "./listing";

/** What the methods of a map return: TypeScript has had a name for it, `MapIterator`, only since version 5.6. */
export type Iterators<T> = {
  [K in "keys" | "values" | "entries"]: ReturnType<ReadonlyMap<string, T>[K]>;
};

/** A tensor of an open file, by its number. @internal */
export interface TensorPlace<F extends OpenFile = OpenFile> {
  readonly file: F;
  /** What is known of some tensors, of which this is number `index`. */
  readonly columns: NativeTensors;
  readonly index: number;
  /** Its number in the file. */
  readonly position: number;
  readonly name: string;
  /** The tensors of the whole model. */
  readonly all: ReadonlyMap<string, unknown>;
}

/** Entries that are shown where nothing else is said, as of a map. */
const SHOWN = 100;

/**
 * The tensors of a model by name, made when they are asked for. The tensors of a model of up to 65,536 stay the same
 * objects; of a larger one, those that were asked for last.
 */
export class TensorMap<T> implements ReadonlyMap<string, T> {
  readonly #list: NameList<NativeTensors, T>;
  readonly #create: (place: TensorPlace) => T;

  /** @internal */
  constructor(files: readonly OpenFile[], create: (place: TensorPlace) => T) {
    this.#list = new NameList(files, TENSORS);
    this.#create = create;
  }

  get size(): number {
    return this.#list.size;
  }

  get(name: string): T | undefined {
    const position = this.#find(name);
    if (position === undefined) return undefined;
    const page = this.#list.page(position);
    return this.#item(page, position - page.first);
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  keys(): Iterators<T>["keys"] {
    return this.#list.names();
  }

  values(): Iterators<T>["values"] {
    return this.#list.each((_name, _position, page, index) => this.#item(page, index));
  }

  entries(): Iterators<T>["entries"] {
    return this.#list.each((name, _position, page, index) => [name, this.#item(page, index)]);
  }

  [Symbol.iterator](): Iterators<T>["entries"] {
    return this.entries();
  }

  forEach(callback: (tensor: T, name: string, map: ReadonlyMap<string, T>) => void, thisArg?: unknown): void {
    for (const [name, tensor] of this) callback.call(thisArg, tensor, name, this);
  }

  /** As a `Map` is shown; no more is looked at than that. @internal */
  [inspectCustom](_depth: number, options: { maxArrayLength?: number | null }, inspect: Inspect): string {
    const { maxArrayLength = SHOWN } = options;
    const most = maxArrayLength ?? Number.POSITIVE_INFINITY;
    const first = new Map<string, T>();
    for (const [name, tensor] of this) {
      if (first.size >= most) break;
      first.set(name, tensor);
    }
    const shown = inspect(first, options).replace(/^Map\(\d+\)/, `${TensorMap.name}(${this.size})`);
    const rest = this.size - first.size;
    const more = `... ${rest} more item${rest === 1 ? "" : "s"}`;
    return rest === 0 ? shown : shown.replace(/\s*\}$/, `,\n  ${more}\n}`);
  }

  #find(name: string): number | undefined {
    return typeof name === "string" ? this.#list.find(name) : undefined;
  }

  #item(page: Page<OpenFile, NativeTensors, T>, index: number): T {
    const { file, columns, firstInFile, names, items } = page;
    let item = items[index];
    if (item === undefined) {
      const position = firstInFile + index;
      item = this.#create({ file, columns, index, position, name: names[index] as string, all: this });
      items[index] = item;
    }
    return item;
  }
}

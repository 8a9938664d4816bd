/** The keys or the tensors of a model, read from the addon's index when they are asked for. */
import { type NativeFile, type NativeFileInfo, type NativeKeys, type NativeTensors, native } from "../backend/native";
import { handleOf, type OpenFile } from "./handle";

/** Entries of a page: few, so that those in any order cost little; enough that a call for a page costs little for each. */
const PAGE_ENTRIES = 64;

/** The pages of so many entries are all kept: far more than any known model has. */
const MOST_KEPT = 2 ** 16;

/** The pages that are kept where there are more: so few that they are collected as cheaply as garbage. */
const FEW_PAGES = 16;

/** Names that the addon does not find, because they are not what is in the file: {@link NameList}. */
const NOT_IN_INDEX = /[\ufffd\p{Surrogate}]/u;

/** What the addon lists: keys, or tensors. */
interface ListKind<Columns extends { names: string[] }> {
  count(info: NativeFileInfo): number;
  list(file: NativeFile, first: number, count: number): Columns;
  find(file: NativeFile, name: string): number;
  replaced(file: NativeFile): Uint32Array;
}

export const KEYS: ListKind<NativeKeys> = {
  count: ({ keyCount }) => keyCount,
  list: native.keys,
  find: native.findKey,
  replaced: native.replacedKeys,
};

export const TENSORS: ListKind<NativeTensors> = {
  count: ({ tensorCount }) => tensorCount,
  list: native.tensors,
  find: native.findTensor,
  replaced: native.replacedTensors,
};

/** Entries of one file that follow each other. */
export interface Page<F extends OpenFile, Columns, Item = unknown> {
  readonly file: F;
  /** The number of the first one, in the model and in the file. */
  readonly first: number;
  readonly firstInFile: number;
  /** Unique in the model. */
  readonly names: readonly string[];
  readonly columns: Columns;
  /** What was made of the entries, at the same places. */
  readonly items: (Item | undefined)[];
}

/** Names with U+FFFD, made unique. */
interface ReplacedNames {
  readonly byName: ReadonlyMap<string, number>;
  readonly byPosition: ReadonlyMap<number, string>;
}

/**
 * Keys or tensors of the files of a model, numbered in the order of the files. A bounded number of them is in memory, and
 * a name is looked up in the addon's index.
 *
 * Names that differ in the file may be equal after decoding, because bytes that are not UTF-8 become U+FFFD. The first
 * keeps its name; later ones get " (2)", " (3)" ..., so that each can be found. Only names with U+FFFD can be equal to
 * others, or to what these become; so only they are in a map.
 *
 * Everything but `size` throws ERR_GGUF_CLOSED after the file was closed.
 */
export class NameList<Columns extends { names: string[] }, Item = unknown, F extends OpenFile = OpenFile> {
  readonly #files: readonly F[];
  readonly #kind: ListKind<Columns>;
  readonly size: number;
  /** The number of the first entry of each file. */
  readonly #begins: number[] = [];
  /** By the number of the first entry. */
  readonly #pages = new Map<number, Page<F, Columns, Item>>();
  /** Where a name was found last: the next one is often there as well. */
  #found = 0;
  #replaced: ReplacedNames | undefined;
  /** The entry that was asked for last: the next name is often the one after it. */
  #recent: { page: Page<F, Columns, Item>; index: number } | undefined;

  constructor(files: readonly F[], kind: ListKind<Columns>) {
    this.#files = files;
    this.#kind = kind;
    let size = 0;
    for (const { info } of files) {
      this.#begins.push(size);
      size += kind.count(info);
    }
    this.size = size;
  }

  /** The number of the entry with this name; undefined where there is none. */
  find(name: string): number | undefined {
    const files = this.#files;
    const recent = this.#recent;
    if (recent !== undefined && recent.page.names[recent.index + 1] === name) {
      handleOf(recent.page.file);
      return recent.page.first + recent.index + 1;
    }
    if (NOT_IN_INDEX.test(name)) return this.#names().byName.get(name);
    for (let i = 0; i < files.length; i++) {
      const at = (this.#found + i) % files.length;
      const position = this.#kind.find(handleOf(files[at] as F), name);
      if (position < 0) continue;
      this.#found = at;
      return (this.#begins[at] as number) + position;
    }
    return undefined;
  }

  /** The page with entry `position`. */
  page(position: number): Page<F, Columns, Item> {
    const page = this.#pageOf(position);
    this.#recent = { page, index: position - page.first };
    return page;
  }

  #pageOf(position: number): Page<F, Columns, Item> {
    const at = this.#fileOf(position);
    const file = this.#files[at] as F;
    const handle = handleOf(file);
    const begin = this.#begins[at] as number;
    const firstInFile = position - begin - ((position - begin) % PAGE_ENTRIES);
    const first = begin + firstInFile;
    const known = this.#pages.get(first);
    if (known !== undefined) return known;
    const count = Math.min(PAGE_ENTRIES, this.#kind.count(file.info) - firstInFile);
    const columns = this.#kind.list(handle, firstInFile, count);
    const { byPosition } = this.#names();
    const names =
      byPosition.size === 0 ? columns.names : columns.names.map((name, i) => byPosition.get(first + i) ?? name);
    const page = {
      file,
      first,
      firstInFile,
      names,
      columns,
      items: new Array<Item | undefined>(names.length).fill(undefined),
    };
    if (this.size > MOST_KEPT && this.#pages.size === FEW_PAGES) {
      this.#pages.delete(this.#pages.keys().next().value as number);
    }
    this.#pages.set(first, page);
    return page;
  }

  /** All pages in order. */
  *pages(): Generator<Page<F, Columns, Item>, void, undefined> {
    for (let position = 0; position < this.size; ) {
      const page = this.page(position);
      yield page;
      position += page.names.length;
    }
  }

  /** All names in order. Throws at once where the file was closed. */
  names(): Generator<string, undefined, undefined> {
    return this.each((name) => name);
  }

  /** In order, what `make` makes of each entry when its turn comes. Throws at once where the file was closed. */
  each<T>(
    make: (name: string, position: number, page: Page<F, Columns, Item>, index: number) => T,
  ): Generator<T, undefined, undefined> {
    handleOf(this.#files[0] as F);
    return this.#each(make);
  }

  *#each<T>(
    make: (name: string, position: number, page: Page<F, Columns, Item>, index: number) => T,
  ): Generator<T, undefined, undefined> {
    for (const page of this.pages()) {
      for (const [index, name] of page.names.entries()) yield make(name, page.first + index, page, index);
    }
    return undefined;
  }

  /** The number of the file that has entry `position`. */
  #fileOf(position: number): number {
    let [low, high] = [0, this.#files.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#begins[middle] as number) <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #names(): ReplacedNames {
    if (this.#replaced !== undefined) return this.#replaced;
    const byName = new Map<string, number>();
    const byPosition = new Map<number, string>();
    /** For each name that occurred more than once: the number to try for the next one. */
    const copies = new Map<string, number>();
    for (const [i, file] of this.#files.entries()) {
      const handle = handleOf(file);
      const count = this.#kind.count(file.info);
      let first = 0;
      let names: string[] = [];
      for (const inFile of this.#kind.replaced(handle)) {
        if (inFile >= first + names.length) {
          first = inFile;
          names = this.#kind.list(handle, first, Math.min(PAGE_ENTRIES, count - first)).names;
        }
        const decoded = names[inFile - first] as string;
        let name = decoded;
        if (byName.has(name)) {
          let copy = copies.get(decoded) ?? 2;
          do name = `${decoded} (${copy++})`;
          while (byName.has(name));
          copies.set(decoded, copy);
        }
        const position = (this.#begins[i] as number) + inFile;
        byName.set(name, position);
        byPosition.set(position, name);
      }
    }
    this.#replaced = { byName, byPosition };
    return this.#replaced;
  }
}

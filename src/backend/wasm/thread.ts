/**
 * What threads do that share the memory of a module: they take calls from a list until none is left. A thread that helps loads
 * nothing else but this file, as thread-of-node.ts or thread-of-page.ts.
 */
import { type CompiledModule, type ModuleExports, WebAssembly } from "./globals";

/** Words by which threads agree: how many lists there were; of the last one the calls that nobody has taken, and those that are done. */
export const LISTS = 0;
export const LEFT = 1;
export const DONE = 2;
/** Whether a call failed; how many threads help, and how many may take calls, with the one that made the list. */
export const FAILED = 3;
export const HELPERS = 4;
export const LIMIT = 5;
const WORDS = 16;

/** A list has up to {@link MOST_CALLS}. Each is so many numbers: which export, how many arguments, and these. */
export const MOST_CALLS = 64;
export const CALL_NUMBERS = 16;
export const LIST_BYTES = 4 * WORDS + 8 * CALL_NUMBERS * MOST_CALLS;

/** A helper looks for work so long before it sleeps, as the addon's do. */
const AWAKE_MS = 0.2;

/** Tiles (relaxed.ts), and where in memory they keep what they keep. */
export interface Tiles {
  readonly module: CompiledModule;
  readonly at: number;
}

/** What a thread needs to help. */
export interface HelperData {
  readonly module: CompiledModule;
  readonly memory: { readonly buffer: SharedArrayBuffer };
  readonly tiles: Tiles | undefined;
  readonly list: number;
  /** The stacks of helpers, one after the other. */
  readonly stacks: number;
  readonly stackBytes: number;
}

/** The list of calls at a place in memory. */
export class CallList {
  readonly words: Int32Array;
  readonly #calls: Float64Array;
  readonly #names: string[];
  readonly #functions: ((...args: number[]) => unknown)[];

  constructor(of: ModuleExports, { buffer }: HelperData["memory"], at: number) {
    this.words = new Int32Array(buffer, at, WORDS);
    this.#calls = new Float64Array(buffer, at + 4 * WORDS, CALL_NUMBERS * MOST_CALLS);
    this.#names = Object.keys(of);
    this.#functions = Object.values(of);
  }

  /** Writes a call. No thread may be taking any. */
  set(i: number, [name, ...args]: Call): void {
    this.#calls.set([this.#names.indexOf(name), args.length, ...args], CALL_NUMBERS * i);
  }

  /** Takes calls until none is left. Each gets the number of the thread as one more argument. */
  take(thread: number): void {
    for (;;) {
      const i = Atomics.sub(this.words, LEFT, 1) - 1;
      if (i < 0) return;
      // Read only now: the list stays as it is until this call is done.
      const [which, count, ...args] = this.#calls.subarray(CALL_NUMBERS * i, CALL_NUMBERS * (i + 1));
      try {
        this.#functions[which!]!(...args.slice(0, count), thread);
      } catch {
        Atomics.store(this.words, FAILED, 1);
      }
      Atomics.add(this.words, DONE, 1);
      Atomics.notify(this.words, DONE);
    }
  }
}

/** A call of an export. */
export type Call = [name: keyof ModuleExports & string, ...args: number[]];

/** Puts tiles into the table of an instance. Returns the places of both, which are the same in all threads. */
export function addTiles(to: ModuleExports, { module, at }: Tiles): [of16: number, of32: number] {
  const { memory, __indirect_function_table: table } = to;
  const place = (at: number) => new WebAssembly.Global({ value: "i32", mutable: false }, at);
  const env = { memory, __indirect_function_table: table, __memory_base: place(at), __table_base: place(0) };
  const made = new WebAssembly.Instance(module, { env }).exports as Record<"tile_of_16" | "tile_of_32", object>;
  const first = table.grow(2);
  table.set(first, made.tile_of_16);
  table.set(first + 1, made.tile_of_32);
  return [first, first + 1];
}

/** Takes calls from each list, and never returns. `onReady` is called before the first. */
export function help({ module, memory, tiles, list, stacks, stackBytes }: HelperData, onReady: () => void): never {
  const made = new WebAssembly.Instance(module, { env: { memory } }).exports as ModuleExports;
  if (tiles !== undefined) addTiles(made, tiles);
  const calls = new CallList(made, memory, list);
  const { words } = calls;
  const thread = Atomics.add(words, HELPERS, 1) + 1;
  made.__stack_pointer.value = stacks + stackBytes * thread; // it grows down
  onReady();
  for (let seen = 0; ; ) {
    let sleepsAt = performance.now() + AWAKE_MS;
    while (Atomics.load(words, LISTS) === seen) {
      if (performance.now() < sleepsAt) continue;
      Atomics.wait(words, LISTS, seen);
      sleepsAt = performance.now() + AWAKE_MS;
    }
    seen = Atomics.load(words, LISTS);
    if (thread < Atomics.load(words, LIMIT)) calls.take(thread);
  }
}

/**
 * Several threads for one piece of work. They share the memory of an instance that is there for that alone. Whoever has the work
 * prepares it, makes a list of calls, and takes calls from it as the threads do that help (thread.ts): so nothing waits for one that
 * has not started, or never will. Helpers allocate nothing. They start once work was large, and are there until a trap, or
 * until memory is much larger than what is in it.
 */
import { partsOf } from "../../base/ranges";
import { WebAssembly } from "./globals";
import { compileModule, Instance, inModule, withTiles, workIn } from "./module";
import { MOST_PAGES, sharedForm } from "./shared-memory";
import * as list from "./thread";

/** How threads are started here. */
export interface Threading {
  /** The bytes of the module. */
  bytes(): Uint8Array;
  /** How many threads run at the same time. */
  processors(): number;
  /** Starts one that helps; `settled`: or has failed. Throws where there can be none. */
  start(data: list.HelperData): { readonly settled: Promise<unknown>; end(): void };
  /** Multiplications for which one thread more is worth it; for tests. */
  readonly share?: number;
}

/** More do not help: the one that has the work brings rows one after the other. */
const MOST_THREADS = 16;

/** As much as the first thread has (scripts/build/wasm-tools.mjs). */
const STACK_BYTES = 2 ** 18;

/** Threads are started once so many numbers were multiplied in work that they would have shared. */
const WORTH_STARTING = 2 ** 26;

/** Multiplications for which one thread more is worth it, some 10 us; calls for each thread, so that all end together. */
const SHARE = 2 ** 17;
const CALLS = 8;

/** How often a thread looks whether the last calls of others are done, before it sleeps. */
const TURNS = 1000;

/** Memory that is larger after work is given back, unless there are caches in it. Of larger memory than this, they take no more. */
const LARGEST_KEPT = 2 ** 28;
const LARGEST_WITH_CACHES = 2 ** 30;

let threading: Threading | undefined;
let limit = Number.POSITIVE_INFINITY;
/** Multiplications of large work so far. */
let multiplied = 0;
let team: Team | undefined;

/** Says how threads are started; undefined: there are none. */
export function setThreading(how: Threading | undefined): void {
  drop();
  threading = how;
}

/** How many threads may work at the same time. */
export function mostThreads(): number {
  return threading === undefined ? 1 : Math.min(limit, threading.processors(), MOST_THREADS);
}

/** From now on so many threads work at most. Starts them; resolves with how many there are. */
export async function useThreads(most: number): Promise<number> {
  limit = most;
  await Promise.all(makeTeam(true)?.helpers.map(({ settled }) => settled) ?? []);
  return Math.min(team?.threads ?? 1, mostThreads());
}

/** The instance of threads, if there can be any, and its memory is not too large for more caches. */
export function sharedInstance(): Instance | undefined {
  const instance = makeTeam(false)?.instance;
  return instance !== undefined && instance.byteLength < LARGEST_WITH_CACHES ? instance : undefined;
}

/** An instance, and the threads that share its memory. */
class Team {
  readonly instance: Instance;
  readonly helpers: ReturnType<Threading["start"]>[] = [];
  readonly #list: list.CallList;
  readonly #data: list.HelperData;

  constructor(bytes: Uint8Array) {
    const { code, pages, segments } = sharedForm(bytes);
    const module = compileModule(code);
    const make = (): Instance => {
      const memory = new WebAssembly.Memory({ initial: pages, maximum: MOST_PAGES, shared: true });
      return new Instance(module, memory, segments);
    };
    this.instance = withTiles(make(), make);
    const { exports, tiles, shared } = this.instance;
    exports.use_scalar(0); // makes the lists that are made when they are first needed: helpers must not
    const [place, stacks] = [list.LIST_BYTES, STACK_BYTES * MOST_THREADS].map((bytes) => exports.allocate(bytes));
    this.#data = { module, memory: shared!, tiles, list: place!, stacks: stacks!, stackBytes: STACK_BYTES };
    this.#list = new list.CallList(exports, shared!, place!);
    this.#list.words.fill(0);
  }

  /** How many threads there are by now. */
  get threads(): number {
    return 1 + Atomics.load(this.#list.words, list.HELPERS);
  }

  /** Starts threads until there are so many. */
  start(most: number, { start }: Threading): void {
    while (this.helpers.length < most - 1) this.helpers.push(start(this.#data));
  }

  /** Does these calls on up to `most` threads. */
  run(calls: readonly list.Call[], most: number): void {
    const { words } = this.#list;
    for (const [i, call] of calls.entries()) this.#list.set(i, call);
    Atomics.store(words, list.DONE, 0);
    Atomics.store(words, list.LIMIT, most);
    Atomics.store(words, list.LEFT, calls.length);
    Atomics.add(words, list.LISTS, 1);
    Atomics.notify(words, list.LISTS, most - 1);
    this.#list.take(0);
    for (let turns = 0; ; turns++) {
      const done = Atomics.load(words, list.DONE);
      if (done === calls.length) break;
      if (turns < TURNS) continue;
      try {
        Atomics.wait(words, list.DONE, done);
      } catch {} // the thread of a page may not sleep
    }
    if (Atomics.load(words, list.FAILED) !== 0) throw new WebAssembly.RuntimeError();
  }
}

/** The instance and, with `starts`, the threads, if there can be any. */
function makeTeam(starts: boolean): Team | undefined {
  const most = mostThreads();
  if (threading === undefined || most === 1) return undefined;
  try {
    team ??= new Team(threading.bytes());
    if (starts) team.start(most, threading);
  } catch {
    threading = undefined; // no memory for it, or a policy that forbids it: not tried again
  }
  return team;
}

function drop(): void {
  for (const helper of team?.helpers ?? []) helper.end();
  team = undefined;
  multiplied = 0;
}

/** How threads share a piece of work. */
export interface Sharing {
  /** How many may work. */
  readonly threads: number;
  /** For how many threads there has to be scratch, whose numbers are calls' last arguments. */
  readonly size: number;
  /** Makes a call for each of some parts of `count`, which begin at multiples of `unit`, and does them: all threads together. */
  share(count: number, unit: number, call: (first: number, end: number) => list.Call): void;
}

/**
 * Does work of so many multiplications as {@link inModule} does, on up to `most` threads. What {@link Sharing.share} does allocates
 * nothing. `wantsTiles`: see there.
 */
export function inThreads<T>(
  multiplications: number,
  most: number | undefined,
  work: (instance: Instance, sharing: Sharing) => T,
  wantsTiles = false,
): T {
  if (multiplied <= WORTH_STARTING && usefulThreads(multiplications, most) > 1) {
    multiplied += multiplications;
    if (multiplied > WORTH_STARTING) makeTeam(true);
  }
  if (team !== undefined) return inInstance(team.instance, multiplications, most, work);
  return inModule((instance) => work(instance, sharingOn(instance, 1)), wantsTiles);
}

/** The same in an instance: on several threads if it is that of threads. */
export function inInstance<T>(
  instance: Instance,
  multiplications: number,
  most: number | undefined,
  work: (instance: Instance, sharing: Sharing) => T,
): T {
  const its = team?.instance === instance ? team : undefined;
  const threads = its === undefined ? 1 : Math.min(usefulThreads(multiplications, most), its.threads);
  try {
    return workIn(instance, () => work(instance, sharingOn(instance, threads, its)));
  } finally {
    const isUseless = instance.isSpoiled || (instance.caches === 0 && instance.byteLength > LARGEST_KEPT);
    if (its !== undefined && isUseless) drop();
  }
}

function usefulThreads(multiplications: number, most = MOST_THREADS): number {
  return Math.max(1, Math.min(most, Math.floor(multiplications / (threading?.share ?? SHARE)), mostThreads()));
}

function sharingOn({ exports }: Instance, threads: number, team?: Team): Sharing {
  const share: Sharing["share"] = (count, unit, call) => {
    const size = threads === 1 ? count : Math.ceil(count / unit / Math.min(CALLS * threads, list.MOST_CALLS)) * unit;
    if (size >= count) {
      const [name, ...args] = call(0, count);
      (exports[name] as (...args: number[]) => void)(...args, 0);
    } else {
      team!.run(
        Array.from(partsOf(0, count, size), ({ start, end }) => call(start, end)),
        threads,
      );
    }
  };
  return { threads, size: 1 + (team?.helpers.length ?? 0), share };
}

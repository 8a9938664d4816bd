/**
 * What lies between products: arrays are brought to the module and back, vectors a piece at a time. Caches of keys and values
 * stay in instances of their own, which are collected when no cache is left in them.
 */
import { partsOf } from "../../base/ranges";
import type { NativeCache, NativeNetwork } from "../native-surface";
import { outOfMemory } from "./failure";
import { formatOf } from "./kernels";
import { type Instance, inModule, isLarge, newInstance } from "./module";
import { taking } from "./reply";
import type { Call } from "./thread";
import { inInstance, inThreads, type Sharing, sharedInstance } from "./threads";

/** Numbers that are brought at a time, some hundred KB, and by a thread; as many multiplications take as long as one of them. */
const PIECE_NUMBERS = 2 ** 17;
const SHARE_NUMBERS = 2 ** 10;
const MULTIPLICATIONS = 4;

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Copies an array to the module; one that is absent has the address 0. */
function put(module: Instance, array: ArrayBufferView | undefined): number {
  return array === undefined ? 0 : module.put(bytesOf(array));
}

/** Copies back what is at an address. */
function take(module: Instance, at: number, to: ArrayBufferView): void {
  bytesOf(to).set(module.bytes(at, to.byteLength));
}

/**
 * Brings vectors of `width` numbers of `x` to the module, a piece at a time, and their results to `out`, which come to lie where
 * the vectors were. `prepare` gets which vectors of `x` they are; it says by which call those at an address are done, the first of
 * which has a number among them.
 */
function forEachPiece(
  x: Float32Array,
  width: number,
  out: Float32Array,
  threads: number | undefined,
  prepare: (module: Instance, first: number, end: number) => (at: number, count: number, index: number) => Call,
): void {
  const most = Math.max(1, Math.floor(PIECE_NUMBERS / width)) * width;
  for (const { start, end } of partsOf(0, x.length, most)) {
    inThreads(MULTIPLICATIONS * (end - start), threads, (module, { share }) => {
      const at = put(module, x.subarray(start, end));
      const call = prepare(module, start / width, end / width);
      const unit = Math.ceil(SHARE_NUMBERS / width);
      share((end - start) / width, unit, (from, to) => call(at + 4 * width * from, to - from, from));
      take(module, at, out.subarray(start, end));
    });
  }
}

/** A cache, and where it is. */
interface Cache {
  readonly home: Instance;
  readonly at: number;
  /** Numbers and bytes of the keys of a token, and numbers of one head. */
  readonly keyNumbers: number;
  readonly keyBytes: number;
  readonly keyWidth: number;
}

/** Where new caches go: the instance of threads, or one for caches alone. */
let home: Instance | undefined;

const unused = new FinalizationRegistry(({ home, at }: Pick<Cache, "home" | "at">) => {
  home.caches--;
  if (!home.isSpoiled) home.exports.net_free_cache(at);
});

/** Does work of so many multiplications where caches are, on up to `threads` threads if the instance is theirs. */
function inHome<T>(
  home: Instance,
  work: (instance: Instance, sharing: Sharing) => T,
  multiplications = 0,
  threads?: number,
): T {
  if (home.isSpoiled) throw outOfMemory();
  return inInstance(home, multiplications, threads, work);
}

/** Registers a cache that the module has made. */
function cacheAt(home: Instance, at: number, sizes: Omit<Cache, "home" | "at">): NativeCache {
  const cache: Cache = { ...sizes, home, at: at >>> 0 };
  home.caches++;
  unused.register(cache, { home, at: cache.at });
  return cache as unknown as NativeCache;
}

const cacheOf = (cache: NativeCache): Cache => cache as unknown as Cache;

export const network: NativeNetwork = {
  rmsNorm: (x, weight, width, epsilon, out, threads) => {
    forEachPiece(x, width, out, threads, (module) => {
      const weights = put(module, weight);
      return (at, count) => ["net_rms_norm", at, weights, width, count, epsilon, at];
    });
  },
  layerNorm: (x, weight, bias, width, epsilon, out, threads) => {
    forEachPiece(x, width, out, threads, (module) => {
      const [weights, biases] = [put(module, weight), put(module, bias)];
      return (at, count) => ["net_layer_norm", at, weights, biases, width, count, epsilon, at];
    });
  },
  normalizeVectors: (x, width, out) => {
    forEachPiece(x, width, out, undefined, () => (at, count) => ["net_normalize", at, width, count, at]);
  },
  roundingError: (x, out, threads) => {
    forEachPiece(x, 32, out, threads, () => (at, count) => ["net_rounding_error", at, 32 * count, at]);
  },
  activate: (x, up, kind, out, threads) => {
    forEachPiece(x, 1, out, threads, (module, first, end) => {
      const others = put(module, up?.subarray(first, end));
      const other = (index: number) => (up === undefined ? 0 : others + 4 * index);
      return (at, count, index) => ["net_activate", at, other(index), kind, count, at];
    });
  },
  softmax: (x, width, scale, cap, out, threads) => {
    forEachPiece(x, width, out, threads, () => (at, count) => ["net_softmax", at, width, count, scale, cap, at]);
  },
  sumOfPowers: (x, out) => {
    inModule((module) => {
      const to = module.allocate(out.byteLength);
      module.exports.net_sum_of_powers(put(module, x), x.length, to);
      take(module, to, out);
    });
  },
  meanOfRows: (x, width, out) => {
    inModule((module) => {
      const to = module.allocate(out.byteLength);
      module.exports.net_mean_of_rows(put(module, x), width, x.length / width, to);
      take(module, to, out);
    });
  },
  addInto: (x, y) => {
    forEachPiece(x, y.length, x, undefined, (module) => {
      const added = put(module, y);
      return (at, count) => ["net_add", at, added, count * y.length, y.length];
    });
  },
  scaleInto: (x, factor) => {
    forEachPiece(x, 1, x, undefined, () => (at, count) => ["net_scale", at, count, factor]);
  },
  rope: (x, headWidth, headCount, table, pairs, adjacent, out, threads) => {
    forEachPiece(x, headWidth * headCount, out, threads, (module, first, end) => {
      const angles = put(module, table.subarray(2 * pairs * first, 2 * pairs * end));
      const its = [pairs, Number(adjacent)] as const;
      return (at, count, index) => [
        ...(["net_rope", at, headWidth, headCount, count, angles + 8 * pairs * index, ...its, at] as const),
      ];
    });
  },
  newCache: (heads, keyWidth, valueWidth, type) => {
    const shared = sharedInstance();
    if (shared !== undefined) home = shared;
    else if (home === undefined || home.isSpoiled || isLarge(home)) home = newInstance();
    const at = inHome(home, ({ exports }) => exports.net_new_cache(heads, keyWidth, valueWidth, type));
    const { blockSize, typeSize } = formatOf(type);
    const keyNumbers = heads * keyWidth;
    return cacheAt(home, at, { keyNumbers, keyBytes: (keyNumbers / blockSize) * typeSize, keyWidth });
  },
  cacheAppend: (cache, keys, values) => {
    const { home, at, keyNumbers } = cacheOf(cache);
    inHome(home, (module) => {
      const [from, fromValues] = [put(module, keys), put(module, values)];
      const count = keys.length / keyNumbers;
      taking(module, module.exports.net_cache_append(at, from, fromValues, count), () => undefined);
    });
  },
  cacheTruncate: (cache, length) => {
    const { home, at } = cacheOf(cache);
    inHome(home, ({ exports }) => exports.net_cache_truncate(at, length));
  },
  cacheFork: (cache) => {
    const { home, at, ...sizes } = cacheOf(cache);
    return cacheAt(
      home,
      inHome(home, ({ exports }) => exports.net_cache_fork(at)),
      sizes,
    );
  },
  cacheRead: (cache, first, count, keys, values) => {
    const { home, at } = cacheOf(cache);
    inHome(home, (module) => {
      const [toKeys, toValues] = [module.allocate(keys.length), module.allocate(values.length)];
      module.exports.net_cache_read(at, first, count, toKeys, toValues);
      take(module, toKeys, keys);
      take(module, toValues, values);
    });
  },
  cacheRestore: (cache, keys, values) => {
    const { home, at, keyBytes } = cacheOf(cache);
    inHome(home, (module) => {
      module.exports.net_cache_restore(at, put(module, keys), put(module, values), keys.length / keyBytes);
    });
  },
  attention: (queries, cache, heads, scale, causal, window, cap, sinks, out, threads) => {
    const { home, at, keyWidth } = cacheOf(cache);
    const count = queries.length / (heads * keyWidth);
    const [units, scratchBytes, multiplications] = inHome(home, (module) => {
      const facts = module.allocate(24);
      module.exports.net_attention_work(count, at, heads, facts);
      return new Float64Array(module.copy(facts, 24)) as unknown as [number, number, number];
    });
    const work = (module: Instance, { share, size }: Sharing): void => {
      const [from, extra, to] = [put(module, queries), put(module, sinks), module.allocate(out.byteLength)];
      const scratch = module.allocate(scratchBytes * size);
      const its = [from, count, at, heads, scale, Number(causal), window, cap, extra, to, scratch] as const;
      share(units, 1, (first, end) => ["net_attention", ...its, first, end]);
      take(module, to, out);
    };
    inHome(home, work, multiplications, threads);
  },
};

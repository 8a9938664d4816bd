/**
 * What lies between products: arrays are brought to the module and back, vectors a piece at a time. Caches of keys and values
 * stay in instances of their own, which are collected when no cache is left in them.
 */
import { partsOf } from "../../base/ranges";
import type { NativeCache, NativeNetwork } from "../native-surface";
import { outOfMemory } from "./failure";
import { formatOf } from "./kernels";
import { type Instance, inModule, isLarge, newInstance, workIn } from "./module";
import { taking } from "./reply";

/** Numbers that are brought at a time: some hundred KB. */
const PIECE_NUMBERS = 2 ** 17;

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
 * the vectors were. `work` gets their address, how many they are, and which of them is the first.
 */
function forEachPiece(
  x: Float32Array,
  width: number,
  out: Float32Array,
  work: (module: Instance, at: number, count: number, first: number) => void,
): void {
  const most = Math.max(1, Math.floor(PIECE_NUMBERS / width)) * width;
  for (const { start, end } of partsOf(0, x.length, most)) {
    inModule((module) => {
      const at = put(module, x.subarray(start, end));
      work(module, at, (end - start) / width, start / width);
      take(module, at, out.subarray(start, end));
    });
  }
}

/** A cache, and where it is. */
interface Cache {
  readonly home: Home;
  readonly at: number;
  /** Numbers and bytes of the keys of a token, and numbers of one head. */
  readonly keyNumbers: number;
  readonly keyBytes: number;
  readonly keyWidth: number;
}

/** An instance for caches. */
interface Home {
  readonly instance: Instance;
  /** Whether a trap has left its memory in any state: all caches in it are lost. */
  isLost: boolean;
}

/** Where new caches go. */
let home: Home | undefined;

const unused = new FinalizationRegistry(({ home: { instance, isLost }, at }: Pick<Cache, "home" | "at">) => {
  if (!isLost) instance.exports.net_free_cache(at);
});

function inHome<T>(home: Home, work: (instance: Instance) => T): T {
  if (home.isLost) throw outOfMemory();
  return workIn(home.instance, work, () => {
    home.isLost = true;
  });
}

/** Registers a cache that the module has made. */
function cacheAt(home: Home, at: number, sizes: Omit<Cache, "home" | "at">): NativeCache {
  const cache: Cache = { ...sizes, home, at: at >>> 0 };
  unused.register(cache, { home, at: cache.at });
  return cache as unknown as NativeCache;
}

const cacheOf = (cache: NativeCache): Cache => cache as unknown as Cache;

export const network: NativeNetwork = {
  rmsNorm: (x, weight, width, epsilon, out) => {
    forEachPiece(x, width, out, (module, at, count) => {
      module.exports.net_rms_norm(at, put(module, weight), width, count, epsilon, at);
    });
  },
  layerNorm: (x, weight, bias, width, epsilon, out) => {
    forEachPiece(x, width, out, (module, at, count) => {
      const [weights, biases] = [put(module, weight), put(module, bias)];
      module.exports.net_layer_norm(at, weights, biases, width, count, epsilon, at);
    });
  },
  normalizeVectors: (x, width, out) => {
    forEachPiece(x, width, out, (module, at, count) => {
      module.exports.net_normalize(at, width, count, at);
    });
  },
  roundingError: (x, out) => {
    forEachPiece(x, 32, out, (module, at, count) => {
      module.exports.net_rounding_error(at, 32 * count, at);
    });
  },
  activate: (x, up, kind, out) => {
    forEachPiece(x, 1, out, (module, at, count, first) => {
      const other = put(module, up?.subarray(first, first + count));
      module.exports.net_activate(at, other, kind, count, at);
    });
  },
  softmax: (x, width, scale, cap, out) => {
    forEachPiece(x, width, out, (module, at, count) => {
      module.exports.net_softmax(at, width, count, scale, cap, at);
    });
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
    forEachPiece(x, y.length, x, (module, at, count) => {
      module.exports.net_add(at, put(module, y), count * y.length, y.length);
    });
  },
  scaleInto: (x, factor) => {
    forEachPiece(x, 1, x, (module, at, count) => {
      module.exports.net_scale(at, count, factor);
    });
  },
  rope: (x, headWidth, headCount, table, pairs, adjacent, out) => {
    forEachPiece(x, headWidth * headCount, out, (module, at, count, first) => {
      const angles = put(module, table.subarray(2 * pairs * first, 2 * pairs * (first + count)));
      module.exports.net_rope(at, headWidth, headCount, count, angles, pairs, Number(adjacent), at);
    });
  },
  newCache: (heads, keyWidth, valueWidth, type) => {
    if (home === undefined || home.isLost || isLarge(home.instance)) {
      home = { instance: newInstance(), isLost: false };
    }
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
  attention: (queries, cache, heads, scale, causal, window, cap, sinks, out) => {
    const { home, at, keyWidth } = cacheOf(cache);
    inHome(home, (module) => {
      const from = put(module, queries);
      const extra = put(module, sinks);
      const to = module.allocate(out.byteLength);
      const count = queries.length / (heads * keyWidth);
      module.exports.net_attention(
        ...([from, count, at, heads, scale, Number(causal), window, cap, extra, to] as const),
      );
      take(module, to, out);
    });
  },
};

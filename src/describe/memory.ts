/**
 * What a model takes to run, from its header alone: weights, and the cache of keys and values, by the rules of llama.cpp.
 * What the header does not tell is said rather than guessed.
 */

import { ggmlTypes } from "../base/types";
import type { GgufMetadata } from "../file/metadata";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { countOf, countsPerLayer, MAX_LAYERS } from "../file/scalars";
import { stringText } from "./metadata-text";
import { type TypeTotal, typeTotals } from "./type-totals";

/** The types that caches commonly have. */
export const CACHE_TYPES = ["f16", "q8_0"] as const;
type CacheType = (typeof CACHE_TYPES)[number];
export type CacheBytes = Record<CacheType, number | null>;

/** What a model takes to run. */
export interface MemoryUse {
  /** The bytes are those of tensors of known types. */
  weights: { bytes: number; types: Map<string, TypeTotal> };
  cache: Cache;
}

/** The cache of keys and values. */
export interface Cache {
  /** Tokens that it is for; null where neither an option nor the header says. */
  context: number | null;
  /** The same as there is room for: a multiple of 256. */
  cells: number | null;
  /** Bytes that a token adds, as long as no layer has forgotten any; null where they are not known. */
  perToken: CacheBytes;
  /** Bytes of the whole. */
  bytes: CacheBytes;
  /** Whether these are limits: the cache takes less, by how much the header does not say. */
  isAtMost: boolean;
  /** What is special about this model, and what is not known of it. */
  remarks: string[];
}

/** llama.cpp makes room for a multiple of so many tokens. */
const CELLS = 256;
/** The tokens that it takes in at a time: a layer with a window keeps so many more. */
const BATCH = 512;

/** Architectures whose layers see only a window, except for the last of each so many, where their files do not say so. */
const WINDOW_PERIODS: Readonly<Record<string, number>> = { cohere2: 4, gemma2: 2, gemma3: 6, "gpt-oss": 2 };

/** What a model takes to run with a context of so many tokens; by default as many as it was made for. */
export function memoryUse(file: GgufModel<GgufModelTensor>, context: number | undefined): MemoryUse {
  const types = typeTotals(file.tensors.values());
  let bytes = 0;
  for (const total of types.values()) bytes += total.bytes || 0;
  return { weights: { bytes, types }, cache: cacheOf(file.metadata, context) };
}

function cacheOf(metadata: GgufMetadata, wanted: number | undefined): Cache {
  const architecture = stringText(metadata, "general.architecture") ?? "";
  const key = (name: string): string => `${architecture}.${name}`;
  const number = (name: string): number | undefined => countOf(metadata, key(name));
  const context = wanted ?? number("context_length") ?? null;
  const cells = context === null ? null : Math.ceil(context / CELLS) * CELLS;
  const nothing = { f16: null, q8_0: null };
  const cache: Cache = { context, cells, perToken: nothing, bytes: nothing, isAtMost: false, remarks: [] };
  if (context === null) cache.remarks.push("the header does not say for how many tokens the model was made");

  const causal = key("attention.causal");
  if (metadata.typeOf(causal)?.type === "bool" && metadata.get(causal) === false) {
    const none = { f16: 0, q8_0: 0 };
    return { ...cache, perToken: none, bytes: none, remarks: ["none: the model reads a text all at once"] };
  }
  const layers = layersOf(metadata, architecture);
  if (typeof layers === "string") return { ...cache, remarks: [...cache.remarks, layers] };
  cache.remarks.push(...layers.remarks);
  cache.isAtMost = layers.isAtMost;

  const sum = (type: CacheType, cellsOf: (layer: Layer) => number): number | null => {
    let total = 0;
    for (const layer of layers.list) {
      const row = rowBytes(type, layer);
      if (row === null) return null;
      total += row * cellsOf(layer);
    }
    return total;
  };
  const both = (cellsOf: (layer: Layer) => number): CacheBytes => ({
    f16: sum("f16", cellsOf),
    q8_0: sum("q8_0", cellsOf),
  });
  cache.perToken = both(() => 1);
  if (cells !== null) {
    const windowed = Math.min(cells, Math.ceil(Math.min(cells, layers.window + BATCH) / CELLS) * CELLS);
    cache.bytes = both(({ hasWindow }) => (hasWindow ? windowed : cells));
  }
  if (cache.perToken.q8_0 === null) {
    cache.remarks.push("the cache cannot be q8_0: the length of its rows is not a multiple of 32");
  }
  return cache;
}

/** What one layer keeps of a token. */
interface Layer {
  /** Numbers of its keys and of its values. */
  keys: number;
  values: number;
  /** Whether it keeps the last tokens only. */
  hasWindow: boolean;
}

interface Layers {
  list: Layer[];
  /** Tokens that a layer with a window sees. */
  window: number;
  isAtMost: boolean;
  remarks: string[];
}

/** The layers that keep keys and values; a sentence where the header does not tell. */
function layersOf(metadata: GgufMetadata, architecture: string): Layers | string {
  const key = (name: string): string => `${architecture}.${name}`;
  const number = (name: string): number | undefined => countOf(metadata, key(name));
  // Blocks that only guess further tokens come last, and keep nothing.
  const count = (number("block_count") ?? -1) - (number("nextn_predict_layers") ?? 0);
  if (count < 0 || count > MAX_LAYERS) return missing(key("block_count"));
  const heads = countsPerLayer(metadata, key("attention.head_count"), count);
  const kvHeads = countsPerLayer(metadata, key("attention.head_count_kv"), count) ?? heads;
  if (kvHeads === undefined) return missing(key("attention.head_count"));
  const embedding = number("embedding_length");
  const byHead = embedding === undefined || !heads?.[0] ? undefined : Math.floor(embedding / heads[0]);
  const keyLength = number("attention.key_length") ?? byHead;
  const valueLength = number("attention.value_length") ?? byHead;
  if (kvHeads.some((n) => n > 0) && (keyLength === undefined || valueLength === undefined)) {
    return missing(key("attention.key_length"));
  }

  const remarks: string[] = [];
  let isAtMost = false;
  const unsure = (remark: string): void => {
    isAtMost = true;
    remarks.push(remark);
  };
  const recurrent = Array.from(metadata.keys()).some((name) =>
    /^(ssm\.|wkv\.|shortconv\.|token_shift_count$)/.test(name.slice(architecture.length + 1)),
  );
  const keeping = kvHeads.filter((n) => n > 0).length;
  if (recurrent) {
    remarks.push("and a state of fixed size for recurrent layers, which is not counted");
    if (keeping === count && architecture !== "falcon-h1") {
      unsure("at most: which layers are recurrent, and keep nothing of a token, is not in the header");
    }
  }
  if (metadata.has(key("attention.key_length_mla"))) {
    unsure("at most: latent attention, of which newer versions of llama.cpp keep the keys alone");
  }
  if (metadata.has(key("attention.shared_kv_layers")) || architecture === "gemma3n") {
    unsure("at most: some layers share what they keep");
  }
  const window = windowOf(metadata, architecture, count);
  if (window === "unknown") unsure("at most: which layers see only a window of the text is not in the header");
  const hasWindow = typeof window === "object" ? window.layers : [];
  const windowed = hasWindow.filter((has, i) => has && (kvHeads[i] as number) > 0).length;
  if (typeof window === "object" && windowed > 0) {
    remarks.push(`${windowed} of ${keeping} layers keep only the last ${window.size} tokens, and a batch of ${BATCH}`);
  }
  const list = kvHeads.map((n, i) => ({
    keys: n === 0 ? 0 : (keyLength as number) * n,
    values: n === 0 ? 0 : (valueLength as number) * n,
    hasWindow: hasWindow[i] ?? false,
  }));
  return { list, window: typeof window === "object" ? window.size : 0, isAtMost, remarks };
}

function missing(key: string): string {
  return `not known: the header has no usable ${key}`;
}

/** Which layers see only the last tokens, and how many; undefined where all see the whole text. */
function windowOf(
  metadata: GgufMetadata,
  architecture: string,
  count: number,
): { size: number; layers: boolean[] } | "unknown" | undefined {
  const size = countOf(metadata, `${architecture}.attention.sliding_window`);
  const usual = Object.hasOwn(WINDOW_PERIODS, architecture) ? WINDOW_PERIODS[architecture] : undefined;
  if (size === 0 || (size === undefined && usual === undefined)) return undefined;
  const pattern = `${architecture}.attention.sliding_window_pattern`;
  const isOther = metadata.has(`${architecture}.attention.key_length_swa`);
  if (size === undefined || isOther) return "unknown";
  if (metadata.typeOf(pattern)?.type === "array") {
    const layers = countsPerLayer(metadata, pattern, count);
    return layers === undefined ? "unknown" : { size, layers: layers.map(Boolean) };
  }
  const period = countOf(metadata, pattern) ?? usual;
  if (period === undefined) return "unknown";
  return { size, layers: Array.from({ length: count }, (_, i) => period === 0 || i % period < period - 1) };
}

/** Bytes that a layer keeps of one token; null where the type cannot hold rows of such a length. */
function rowBytes(type: CacheType, { keys, values }: Layer): number | null {
  const { blockSize, typeSize } = ggmlTypes[type === "f16" ? "F16" : "Q8_0"];
  if (keys % blockSize !== 0 || values % blockSize !== 0) return null;
  return ((keys + values) / blockSize) * typeSize;
}

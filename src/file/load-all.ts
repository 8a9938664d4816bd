/** The weights of many tensors at once: {@link loadAll}. */
import { ASYNC_OPTIONS, checkAsync, checkBoolean, checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import type { AsyncOptions, DType, OutArray } from "../base/options";
import { checkDType, dtypeBytes, explainFailure } from "../decode/request";
import { forEachConcurrently } from "../source/concurrent";
import { GgufModelTensor } from "./model-tensor";

/** Options of {@link loadAll}. */
export interface LoadOptions<D extends DType = DType> extends AsyncOptions {
  /** Default `"f32"`. */
  dtype?: D | undefined;
  /**
   * Put all results into as few SharedArrayBuffers as have less than 4 GiB, each at a multiple of 64 bytes, so that
   * `postMessage` gives all of them to a worker without a copy. A result of 4 GiB or more has a buffer of its own; V8 cannot
   * post such an array, so post its `{ buffer, byteOffset, length }`. Default false.
   */
  shared?: boolean | undefined;
  /** The most bytes that all results may take. If they would take more, nothing is loaded. Default: no limit. */
  maxBytes?: number | undefined;
}

/** The array that {@link loadAll} makes for a tensor: bits in a `Uint16Array` for f16 and bf16. */
export type Loaded<D extends DType = DType> = D extends "f32" ? Float32Array : Uint16Array;

const LOAD_OPTIONS: OptionNames<LoadOptions> = {
  dtype: true,
  shared: true,
  maxBytes: true,
  ...ASYNC_OPTIONS,
};

/** Results in a SharedArrayBuffer begin at multiples of so many bytes: a line of the cache. */
const ALIGNMENT = 64;

/** Bytes of a shared buffer, at most: V8 keeps where an array begins modulo 2^32 when it posts it to another thread. */
const MOST_SHARED_BYTES = 2 ** 32 - ALIGNMENT;

/** Tensors that are loaded at a time: while one is fetched, another is decoded. */
const AT_A_TIME = 4;

/**
 * Turns many tensors into numbers, for a runtime that keeps dequantized weights.
 *
 * ```js
 * const layer = [...file.tensors.values()].filter(({ name }) => name.startsWith("blk.0."));
 * const weights = await loadAll(layer, { shared: true, maxBytes: 2 ** 30, onProgress });
 * weights.get("blk.0.attn_norm.weight");   // Float32Array
 * ```
 *
 * @param tensors of one model or of several, local or remote; `file.tensors.values()` for all. Those of a model must
 *   have different names
 * @param options `onProgress` counts the elements of all tensors together; aborting `signal` aborts all of them
 * @returns the numbers of each tensor by its name, in the given order
 * @throws TypeError for an argument of the wrong type, or two tensors of one name
 * @throws GgufError ERR_GGUF_RANGE where the results take more than `maxBytes`, before anything is loaded;
 *   ERR_GGUF_OUT_OF_MEMORY; otherwise as {@link GgufModelTensor.dequantize}. The first tensor that fails decides; the
 *   work on the others is over by then
 */
export async function loadAll<D extends DType = "f32">(
  tensors: Iterable<GgufModelTensor>,
  options?: LoadOptions<D>,
): Promise<Map<string, Loaded<D>>> {
  const { dtype: given, shared: givenShared, maxBytes, ...rest } = checkOptions(options, LOAD_OPTIONS);
  const dtype = checkDType(given);
  const shared = checkBoolean("options.shared", givenShared, false);
  const { signal, onProgress, threads } = checkAsync(rest);
  const plan = planOf(tensors, dtype, shared);
  checkBudget(plan, dtype, maxBytes);
  signal?.throwIfAborted();

  const memory = shared ? plan.buffers.map(sharedMemory) : [];
  const weights = new Map<string, Loaded<D> | undefined>(plan.places.map(({ tensor }) => [tensor.name, undefined]));
  let done = 0;
  const atATime = Math.min(AT_A_TIME, threads ?? AT_A_TIME);
  await forEachConcurrently(plan.places, atATime, signal, async ({ tensor, buffer, offset }, stop) => {
    const { elementCount } = tensor;
    const shared = memory[buffer];
    const out = shared && placeIn(shared, dtype, offset, elementCount);
    let counted = 0;
    const count = (elements: number): void => {
      if (elements === counted) return;
      done += elements - counted;
      counted = elements;
      onProgress?.(done, plan.elementCount);
    };
    const result = await tensor.dequantize({
      dtype,
      ...(out === undefined ? {} : { out }),
      signal: stop,
      threads: threads && Math.floor(threads / atATime),
      ...(onProgress === undefined ? {} : { onProgress: count }),
    });
    count(elementCount);
    weights.set(tensor.name, result as Loaded<D>);
  });
  return weights as Map<string, Loaded<D>>;
}

/** Where a result lies. */
interface Place {
  readonly buffer: number;
  readonly offset: number;
}

interface Plan {
  readonly places: readonly (Place & { readonly tensor: GgufModelTensor })[];
  /** Bytes of each shared buffer. */
  readonly buffers: readonly number[];
  readonly elementCount: number;
  readonly byteLength: number;
}

/**
 * Where results of these sizes lie in buffers, each at the beginning of a line: as many in a buffer as take `most` bytes, or
 * one that takes more.
 */
export function placesOf(sizes: readonly number[], most = MOST_SHARED_BYTES): { places: Place[]; buffers: number[] } {
  const places: Place[] = [];
  const buffers = [0];
  for (const size of sizes) {
    const lines = Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    const filled = buffers.at(-1) as number;
    if (filled > 0 && filled + lines > most) buffers.push(0);
    const buffer = buffers.length - 1;
    places.push({ buffer, offset: buffers[buffer] as number });
    buffers[buffer] = (buffers[buffer] as number) + lines;
  }
  return { places, buffers };
}

function planOf(tensors: unknown, dtype: DType, shared: boolean): Plan {
  if (typeof tensors !== "object" || tensors === null || !(Symbol.iterator in tensors)) {
    throw invalidArgType("tensors", "an iterable of tensors", tensors);
  }
  const all: GgufModelTensor[] = [];
  const names = new Set<string>();
  for (const tensor of tensors as Iterable<unknown>) {
    if (!(tensor instanceof GgufModelTensor)) throw invalidArgType("tensors", "an iterable of tensors", tensor);
    const { name } = tensor;
    if (names.has(name)) throw invalidArgValue("tensors", "must not have two tensors of one name", name);
    names.add(name);
    all.push(tensor);
  }
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  const elementCount = sum(all.map((tensor) => tensor.elementCount));
  const sizes = all.map((tensor) => tensor.elementCount * dtypeBytes(dtype));
  const { places, buffers } = placesOf(sizes);
  return {
    places: all.map((tensor, i) => ({ tensor, ...(places[i] as Place) })),
    buffers,
    elementCount,
    byteLength: sum(shared ? buffers : sizes),
  };
}

function checkBudget({ places, byteLength }: Plan, dtype: DType, maxBytes: unknown): void {
  if (maxBytes === undefined) return;
  if (typeof maxBytes !== "number") throw invalidArgType("options.maxBytes", "of type number", maxBytes);
  if (!(maxBytes >= 0)) {
    throw new GgufError("ERR_GGUF_RANGE", `options.maxBytes must be 0 or more, found ${maxBytes}`);
  }
  if (byteLength <= maxBytes) return;
  const hint = dtype === "f32" ? "load fewer, or as f16 or bf16, which take half" : "load fewer";
  const detail = `${places.length} tensors take ${byteLength} bytes as ${dtype}, more than options.maxBytes, ${maxBytes}: ${hint}`;
  throw new GgufError("ERR_GGUF_RANGE", detail);
}

function placeIn(memory: SharedArrayBuffer, dtype: DType, offset: number, length: number): OutArray {
  return dtype === "f32" ? new Float32Array(memory, offset, length) : new Uint16Array(memory, offset, length);
}

function sharedMemory(byteLength: number): SharedArrayBuffer {
  if (typeof SharedArrayBuffer === "undefined") {
    const detail = "there is no shared memory in a page that is not isolated (crossOriginIsolated): leave it out";
    throw new GgufError("ERR_GGUF_OUT_OF_MEMORY", `options.shared: ${detail}`);
  }
  try {
    return new SharedArrayBuffer(byteLength);
  } catch (error) {
    throw explainFailure(error, byteLength);
  }
}

/** What is known of the values of all tensors of a model, or of two: they are read one after the other, and what is known is kept. */
import type { TensorStats } from "gguf-native";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Measured, Pair } from "../lib/pairs";
import type { ModelView } from "../lib/protocol";
import { ask, messageOf } from "./client";

/** Lists that are sorted by what is found do not change more often than this. */
const REFRESH_MS = 400;
/** Values that are read without being asked for. */
export const MOST_AT_ONCE = 2 ** 31;

export interface Measuring<R> {
  readonly measured: ReadonlyMap<number, R>;
  /** How many weights have been read, of all; undefined where nothing is under way. */
  readonly work: { readonly done: number; readonly total: number } | undefined;
  readonly isComplete: boolean;
  start(): void;
  stop(): void;
}

type Failed = { readonly failure: string };

/** By the second model (the same one, for what is of one alone), then by the first. Models that are closed take it along. */
const known = new WeakMap<ModelView, WeakMap<ModelView, Map<number, unknown>>>();

function knownOf<R>(a: ModelView, b: ModelView): Map<number, R | Failed> {
  const ofB = known.get(b) ?? new WeakMap<ModelView, Map<number, unknown>>();
  known.set(b, ofB);
  const results = ofB.get(a) ?? new Map<number, unknown>();
  ofB.set(a, results);
  return results as Map<number, R | Failed>;
}

/**
 * Asks one question after the other.
 * @param items by their keys, with how many weights each has
 * @param startsItself whether it begins, or goes on, as soon as it is shown
 */
function useWork<R>(
  results: Map<number, R | Failed>,
  items: readonly (readonly [key: number, weights: number])[],
  startsItself: boolean,
  question: (key: number, signal: AbortSignal) => Promise<R>,
): Measuring<R | Failed> {
  const [measured, setMeasured] = useState<ReadonlyMap<number, R | Failed>>(() => new Map(results));
  const [work, setWork] = useState<Measuring<R>["work"]>(undefined);
  const running = useRef<AbortController>(undefined);

  const start = async (): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const total = items.reduce((sum, [, weights]) => sum + weights, 0);
    let done = 0;
    let shownAt = 0;
    const refresh = (): void => {
      shownAt = performance.now();
      setMeasured(new Map(results));
    };
    for (const [key, weights] of items) {
      setWork({ done, total });
      if (!results.has(key)) {
        try {
          results.set(key, await question(key, signal));
        } catch (error) {
          if (signal.aborted) break;
          results.set(key, { failure: messageOf(error) });
        }
        if (performance.now() - shownAt > REFRESH_MS) refresh();
      }
      done += weights;
    }
    if (running.current !== controller) return; // nothing shows it any more
    refresh();
    setWork(undefined);
  };
  const stop = (): void => running.current?.abort();

  useEffect(() => {
    if (startsItself && results.size < items.length) void start();
    return () => {
      stop();
      running.current = undefined;
    };
  }, []);
  return { measured, work, isComplete: measured.size === items.length, start: () => void start(), stop };
}

/** In what all pairs of tensors differ. */
export function useMeasured(
  a: ModelView,
  b: ModelView,
  pairs: readonly Pair[],
  startsItself: boolean,
): Measuring<Measured> {
  const items = [...pairs.entries()].filter(([, pair]) => pair.isComparable);
  return useWork(
    knownOf(a, b),
    items.map(([i, pair]) => [i, a.tensors.elementCounts[pair.a] as number]),
    startsItself,
    (i, signal) => {
      const pair = pairs[i] as Pair;
      const addresses = { a: { model: a.id, tensor: pair.a }, b: { model: b.id, tensor: pair.b } };
      return ask("compare", addresses, { signal });
    },
  );
}

/** What the values of all tensors are like. */
export function useStats(model: ModelView, startsItself: boolean): Measuring<TensorStats | Failed> {
  return useWork(
    knownOf<TensorStats>(model, model),
    Array.from(model.tensors.elementCounts, (weights, i) => [i, weights]),
    startsItself,
    (tensor, signal) => ask("stats", { model: model.id, tensor, bins: 0 }, { signal }),
  );
}

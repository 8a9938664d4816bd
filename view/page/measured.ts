/**
 * What is known of the values of all tensors of a model, alone or compared with those of another one: they are read one after
 * the other, and what is known is kept.
 */
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

type Found = Measured | TensorStats;

/** By the second model, or where there is none by the first, then by the first. Models that are closed take it along. */
const known = new WeakMap<ModelView, WeakMap<ModelView, Map<number, Found>>>();

function knownOf(a: ModelView, b: ModelView): Map<number, Found> {
  const ofB = known.get(b) ?? new WeakMap<ModelView, Map<number, Found>>();
  known.set(b, ofB);
  const results = ofB.get(a) ?? new Map<number, Found>();
  ofB.set(a, results);
  return results;
}

/**
 * In what all pairs differ, or where there is no second model, what the tensors of the first one are like.
 * @param startsItself whether it begins, or goes on, as soon as it is shown
 */
export function useMeasured<R extends Found = Measured>(
  a: ModelView,
  b: ModelView | undefined,
  pairs: readonly Pair[],
  startsItself: boolean,
): Measuring<R | Measured> {
  const results = knownOf(a, b ?? a) as Map<number, R | Measured>;
  const [measured, setMeasured] = useState<ReadonlyMap<number, R | Measured>>(() => new Map(results));
  const [work, setWork] = useState<Measuring<R>["work"]>(undefined);
  const running = useRef<AbortController>(undefined);
  const comparable = [...pairs.entries()].filter(([, pair]) => pair.isComparable);
  const weights = ({ a: tensor }: Pair): number => a.tensors.elementCounts[tensor] as number;

  const start = async (): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const total = comparable.reduce((sum, [, pair]) => sum + weights(pair), 0);
    let done = 0;
    let shownAt = 0;
    const refresh = (): void => {
      shownAt = performance.now();
      setMeasured(new Map(results));
    };
    for (const [i, pair] of comparable) {
      setWork({ done, total });
      if (!results.has(i)) {
        try {
          const one = { model: a.id, tensor: pair.a };
          const found = await (b === undefined
            ? ask("stats", { ...one, bins: 0 }, { signal })
            : ask("compare", { a: one, b: { model: b.id, tensor: pair.b } }, { signal }));
          results.set(i, found as R);
        } catch (error) {
          if (signal.aborted) break;
          results.set(i, { failure: messageOf(error) });
        }
        if (performance.now() - shownAt > REFRESH_MS) refresh();
      }
      done += weights(pair);
    }
    if (running.current !== controller) return; // nothing shows it any more
    refresh();
    setWork(undefined);
  };
  const stop = (): void => running.current?.abort();

  useEffect(() => {
    if (startsItself && results.size < comparable.length) void start();
    return () => {
      stop();
      running.current = undefined;
    };
  }, []);
  return { measured, work, isComplete: measured.size === comparable.length, start: () => void start(), stop };
}

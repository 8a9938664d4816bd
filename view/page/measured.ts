/** What is known of the values of all pairs of two models: they are compared one after the other, and what is known is kept. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Measured, Pair } from "../lib/pairs";
import type { ModelView, TensorAddress } from "../lib/protocol";
import { ask, messageOf } from "./client";

/** Lists that are sorted by what is found do not change more often than this. */
const REFRESH_MS = 400;

export interface Measuring {
  readonly measured: ReadonlyMap<number, Measured>;
  /** How many weights have been compared, of all; undefined where nothing is under way. */
  readonly work: { readonly done: number; readonly total: number } | undefined;
  readonly isComplete: boolean;
  start(): void;
  stop(): void;
}

/** By the second model, then by the first. Models that are closed take it along. */
const known = new WeakMap<ModelView, WeakMap<ModelView, Map<number, Measured>>>();

function knownOf(a: ModelView, b: ModelView): Map<number, Measured> {
  const ofB = known.get(b) ?? new WeakMap<ModelView, Map<number, Measured>>();
  known.set(b, ofB);
  const results = ofB.get(a) ?? new Map<number, Measured>();
  ofB.set(a, results);
  return results;
}

/** @param startsItself whether it begins, or goes on, as soon as it is shown */
export function useMeasured(
  a: ModelView,
  b: ModelView,
  pairs: readonly Pair[],
  startsItself: boolean,
): Measuring {
  const results = knownOf(a, b);
  const [measured, setMeasured] = useState<ReadonlyMap<number, Measured>>(() => new Map(results));
  const [work, setWork] = useState<Measuring["work"]>(undefined);
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
          results.set(i, await ask("compare", addressesOf(a, b, pair), { signal }));
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

function addressesOf(
  a: ModelView,
  b: ModelView,
  pair: Pick<Pair, "a" | "b">,
): { a: TensorAddress; b: TensorAddress } {
  return { a: { model: a.id, tensor: pair.a }, b: { model: b.id, tensor: pair.b } };
}

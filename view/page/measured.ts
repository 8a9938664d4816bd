/**
 * What is known of the values of all tensors of a model, alone or compared with those of another one: they are read a few at
 * a time, and what is known is kept.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Measured, Pair } from "../lib/pairs";
import type { Found, ModelView } from "../lib/protocol";
import { ask, messageOf } from "./client";

/** What is found is not shown more often than this: to draw it again takes longer than to measure a tensor. */
const REFRESH_MS = 400;
/** Questions at a time, so that nobody waits for messages; browsers send six to a server. */
const AT_A_TIME = 4;
/** Tensors that a question is about, at most, and weights that are enough for one. */
const MOST_TOGETHER = 64;
const WEIGHTS_TOGETHER = 2 ** 24;
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
    let done = comparable.reduce((sum, [i, pair]) => sum + (results.has(i) ? weights(pair) : 0), 0);
    let shownAt = 0;
    const refresh = (): void => {
      shownAt = performance.now();
      setMeasured(new Map(results));
      setWork({ done, total });
    };
    refresh();
    const groups: [number, Pair][][] = [];
    let size = Number.POSITIVE_INFINITY;
    for (const one of comparable) {
      if (results.has(one[0])) continue;
      if (size >= WEIGHTS_TOGETHER || groups.at(-1)?.length === MOST_TOGETHER) size = 0;
      if (size === 0) groups.push([]);
      groups.at(-1)?.push(one);
      size += weights(one[1]);
    }
    const left = groups.values();
    const measureRest = async (): Promise<void> => {
      for (const some of left) {
        const question = some.map(([, pair]) => {
          const one = { model: a.id, tensor: pair.a };
          return b === undefined ? one : { a: one, b: { model: b.id, tensor: pair.b } };
        });
        const answers = await ask("measure", question, { signal }).catch((error: unknown) => {
          if (signal.aborted) return [];
          return some.map(() => ({ failure: messageOf(error) }));
        });
        if (signal.aborted) return;
        for (const [at, [i, pair]] of some.entries()) {
          results.set(i, answers[at] as R);
          done += weights(pair);
        }
        if (performance.now() - shownAt > REFRESH_MS) refresh();
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, measureRest));
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

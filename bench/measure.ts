/**
 * Timing on machines that others use too: contenders are run in turns, in short batches, and each keeps its fastest.
 * What slows the machine down for a while then slows down all of them, and what disturbs one batch counts for none.
 */
import { performance } from "node:perf_hooks";

export interface Contender {
  name: string;
  /** One call; a promise is waited for. */
  run(): unknown;
  /** How many times over one call does the work; 1 if absent. */
  repeats?: number;
  /** At most so many rounds, for what takes long and says little. */
  maxRounds?: number;
}

export interface Timing {
  /** Seconds for the work once, in the fastest batch. */
  best: number;
  /** The same in the median batch. */
  median: number;
  rounds: number;
}

export interface Patience {
  /** Seconds that all contenders may take together, warming up not counted. */
  budget: number;
  /** Rounds that are run even if that takes longer. */
  minRounds: number;
}

/** Long enough for the clock, short enough to fall between two disturbances. */
const BATCH_SECONDS = 0.0005;
const WARM_UP_SECONDS = 0.03;
const WARM_UP_CALLS = 20_000;

/** Runs the contenders in turns until the budget is used up; timings by name. */
export async function race(
  contenders: readonly Contender[],
  { budget, minRounds }: Patience,
): Promise<Map<string, Timing>> {
  const entrants = [];
  for (const contender of contenders) {
    entrants.push({ contender, calls: await warmUp(contender), samples: [] as number[] });
  }
  const end = seconds() + budget;
  for (let round = 0; round < minRounds || seconds() < end; round++) {
    let ran = false;
    for (const { contender, calls, samples } of entrants) {
      if (round >= (contender.maxRounds ?? Number.POSITIVE_INFINITY)) continue;
      ran = true;
      samples.push((await timed(contender, calls)) / (calls * (contender.repeats ?? 1)));
    }
    if (!ran) break;
  }
  return new Map(entrants.map(({ contender, samples }) => [contender.name, summary(samples)]));
}

/** Lets the compiler see the function; returns how many calls make a batch. */
async function warmUp(contender: Contender): Promise<number> {
  const first = await timed(contender, 1);
  if (first >= WARM_UP_SECONDS) return 1;
  let calls = 1;
  let spent = first;
  let rate = first;
  for (let chunk = 1; spent < WARM_UP_SECONDS && calls < WARM_UP_CALLS; chunk *= 2) {
    const took = await timed(contender, chunk);
    calls += chunk;
    spent += took;
    rate = took / chunk;
  }
  return Math.max(1, Math.round(BATCH_SECONDS / rate));
}

async function timed({ run }: Contender, calls: number): Promise<number> {
  const begin = seconds();
  for (let i = 0; i < calls; i++) {
    const result = run();
    if (result instanceof Promise) await result;
  }
  return seconds() - begin;
}

function summary(samples: readonly number[]): Timing {
  const sorted = samples.toSorted((a, b) => a - b);
  return { best: sorted[0]!, median: sorted[sorted.length >> 1]!, rounds: sorted.length };
}

function seconds(): number {
  return performance.now() / 1000;
}

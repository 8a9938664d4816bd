/**
 * Timing on machines that other programs use, too. Contenders run in turns, in short batches. The fastest batch of each
 * counts. If the machine is slow for a while, this affects all contenders. A batch that is disturbed does not count.
 * Runs in browsers, too.
 */

export interface Contender {
  name: string;
  /** One call. If it returns a promise, the promise is awaited. */
  run(): unknown;
  /** How many times one call does the work; default 1. A fraction if it does a part of the work. */
  repeats?: number;
  /** The maximum number of rounds, for slow contenders that need few. */
  maxRounds?: number;
}

export interface Timing {
  /** Seconds to do the work once, in the fastest batch. */
  best: number;
  /** The same, in the median batch. */
  median: number;
  rounds: number;
}

export interface Patience {
  /** Seconds that all contenders may take together, without the warm-up. */
  budget: number;
  /** The minimum number of rounds, even if they exceed the budget. */
  minRounds: number;
  /** The fewest calls of a batch, where the clock is coarse; default 1. */
  minCalls?: number;
}

/** Long enough for the clock's resolution, and short enough that many batches are not disturbed. */
const BATCH_SECONDS = 0.0005;
const WARM_UP_SECONDS = 0.03;
const WARM_UP_CALLS = 20_000;

/** Runs the contenders in turns until the budget is used up. Returns the timings by name. */
export async function race(
  contenders: readonly Contender[],
  { budget, minRounds, minCalls = 1 }: Patience,
): Promise<Map<string, Timing>> {
  const entrants = [];
  for (const contender of contenders) {
    const calls = Math.max(minCalls, await warmUp(contender));
    entrants.push({ contender, calls, samples: [] as number[] });
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

/** Runs the function until the compiler has optimized it. Returns the number of calls per batch. */
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

/** What counts of the seconds that the batches took. */
export function summary(samples: readonly number[]): Timing {
  const sorted = samples.toSorted((a, b) => a - b);
  return { best: sorted[0]!, median: sorted[sorted.length >> 1]!, rounds: sorted.length };
}

function seconds(): number {
  return performance.now() / 1000;
}

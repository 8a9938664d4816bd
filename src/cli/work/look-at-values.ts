/** Work on the values of many tensors, which the addon does on all cores. */
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import type { AsyncOptions, GgufModelTensor } from "../../index";
import { cpu, GgufTensor } from "../../index";
import { forEachConcurrently } from "../../source/concurrent";
import type { Progress } from "../output/progress";

/** Tensors of so many elements are looked at in this thread: the way to another and back would take longer. */
const SMALL_ELEMENTS = 2 ** 16;

/** Elements of small tensors, and tensors, that are looked at between two turns of the event loop. */
const TURN_ELEMENTS = 2 ** 20;
const TURN_TENSORS = 256;

/** How many tensors of models on servers are fetched at a time. */
export const FETCHED_TENSORS = 4;

/** What is done with a tensor. */
export interface ValueWork<Item, Result> {
  /** The bytes that it reads. */
  cost(item: Item): number;
  /** On the addon's threads. */
  later(item: Item, options: AsyncOptions): Promise<Result>;
  /** At once, in this thread; only for tensors that {@link isSmall}. */
  now?(item: Item): Result;
  /** The tensor, or one of those, that an item is about. */
  tensor(item: Item): GgufModelTensor;
}

/** Whether a tensor is on this machine, and looked at before another thread has started. */
function isSmall(tensor: GgufModelTensor): boolean {
  return tensor instanceof GgufTensor && tensor.elementCount <= SMALL_ELEMENTS;
}

/** What all items cost. */
export function totalCost<Item>(items: Iterable<Item>, { cost }: Pick<ValueWork<Item, unknown>, "cost">): number {
  let total = 0;
  for (const item of items) total += cost(item);
  return total;
}

/**
 * Does the work on all items, as many at a time as keep the machine busy, and keeps none of them.
 * @param progress goes on by the cost of all items
 * @param each is called with every result and the number of its item, as soon as it is there: in no order
 * @throws what the work throws for the first item, in their order, for which it fails
 */
export async function lookAtValues<Item, Result>(
  items: Iterable<Item>,
  work: ValueWork<Item, Result>,
  progress: Progress,
  each: (result: Result, index: number, item: Item) => void,
): Promise<void> {
  const [first] = items;
  if (first === undefined) return;
  const isLocal = work.tensor(first) instanceof GgufTensor;
  const limit = isLocal ? cpu().threads : FETCHED_TENSORS;
  await forEachConcurrently(turns(items, work), limit, undefined, async (turn, signal) => {
    for (const [index, item] of turn) {
      const cost = work.cost(item);
      if (work.now !== undefined && isSmall(work.tensor(item))) {
        each(work.now(item), index, item);
        progress.advance(cost);
        continue;
      }
      let reported = 0;
      // In whole bytes, so that they add up to all of them.
      const report = (bytes: number): void => {
        progress.advance(bytes - reported);
        reported = bytes;
      };
      const onProgress = (done: number, total: number): void => report(Math.floor((done / total) * cost));
      each(await work.later(item, { signal, onProgress }), index, item);
      report(cost);
    }
    if (turn.length > 1) await eventLoopTurn();
  });
}

/** The items with their numbers, each alone, except that small ones that follow each other share a turn. */
function* turns<Item>(
  items: Iterable<Item>,
  { tensor }: ValueWork<Item, unknown>,
): Generator<[index: number, item: Item][], void, undefined> {
  let turn: [index: number, item: Item][] = [];
  let elements = 0;
  let index = 0;
  for (const item of items) {
    const { elementCount } = tensor(item);
    const fits = elements + elementCount <= TURN_ELEMENTS && turn.length < TURN_TENSORS;
    if (turn.length > 0 && (!isSmall(tensor(item)) || !fits)) {
      yield turn;
      [turn, elements] = [[], 0];
    }
    turn.push([index++, item]);
    // A tensor that is not small is a turn of its own.
    elements += isSmall(tensor(item)) ? elementCount : TURN_ELEMENTS;
  }
  if (turn.length > 0) yield turn;
}

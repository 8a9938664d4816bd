/** Lists that are gone through again instead of being kept, so that they take no memory. */

/** A list whose items are made each time that it is gone through. */
export interface Listed<T> extends Iterable<T> {
  readonly count: number;
}

/** Lists of more items are shown as they come: others are kept, to be put in order. */
export const MOST_ARRANGED = 2 ** 16;

/** Something that is made each time that it is gone through. */
export function again<T>(make: () => Iterable<T>): Iterable<T> {
  return { [Symbol.iterator]: () => make()[Symbol.iterator]() };
}

/** The items of `make()`, each time. `count` is how many there are, where that is known. */
export function listed<T>(make: () => Iterable<T>, count?: number): Listed<T> {
  return { count: count ?? countOf(make()), ...again(make) };
}

/** Of `count` items of `make()` those that `isWanted` accepts: all where it is undefined. */
export function listedWhere<T>(
  make: () => Iterable<T>,
  count: number,
  isWanted: ((item: T) => boolean) | undefined,
): Listed<T> {
  if (isWanted === undefined) return listed(make, count);
  return listed(function* () {
    for (const item of make()) if (isWanted(item)) yield item;
  });
}

function countOf(items: Iterable<unknown>): number {
  let count = 0;
  for (const _ of items) count++;
  return count;
}

/** Statistics and comparisons: what is found of each step is joined to totals. */
import { haveSameBytes } from "../../base/bytes";
import { partsOf } from "../../base/ranges";
import type { NativeAddon, NativeFile, ProgressCallback, Started } from "../native-surface";
import { run, SMALL_NUMBERS, STEP_NUMBERS, type Steps, startOn } from "./block-jobs";
import { type Blocks, blocksOfArray, blocksOfTensor, elementsOf } from "./blocks";
import { about } from "./files";
import * as kernels from "./kernels";

/** What was found so far. */
interface Totals {
  of: Float64Array;
}

/** What the addon does with blocks that are measured or compared. */
export const totals = {
  stats: (file, index, first, end, totals) => {
    const blocks = blocksOfTensor(file, index);
    about(blocks.path, () => blocks.check(first, end - first));
    const joined = { of: totals.slice() };
    run(blocks, measure(blocks, first, end, joined));
    return joined.of;
  },
  statsAsync: (file, index, first, end, totals, onProgress) => {
    const blocks = blocksOfTensor(file, index);
    about(blocks.path, () => blocks.check(first, end - first));
    return startTotals([blocks], end - first, totals, (joined) => measure(blocks, first, end, joined), onProgress);
  },
  statsBlocksAsync: (type, array, bigEndian, totals, onProgress) => {
    const blocks = blocksOfArray(type, array, bigEndian);
    const count = elementsOf(blocks, array);
    return startTotals([blocks], count, totals, (joined) => measure(blocks, 0, count, joined), onProgress);
  },
  compare: comparisonNow(compare),
  compareBytes: comparisonNow(compareBytes),
  compareAsync: comparison(compare),
  compareBytesAsync: comparison(compareBytes),
  compareBlocksAsync: (typeA, arrayA, typeB, arrayB, bigEndian, totals, onProgress) => {
    const a = blocksOfArray(typeA, arrayA, (bigEndian & 1) !== 0);
    const b = blocksOfArray(typeB, arrayB, (bigEndian & 2) !== 0);
    const count = elementsOf(a, arrayA);
    return startTotals([a, b], count, totals, (joined) => compare(a, b, 0, count, joined), onProgress);
  },
} satisfies Partial<NativeAddon>;

/** Joins the statistics of elements `first` to `end` to totals. */
function* measure(blocks: Blocks, first: number, end: number, totals: Totals): Steps {
  const { format, bigEndian } = blocks;
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    totals.of = kernels.stats(format.id, blocks.take(from, to - from), bigEndian, totals.of);
    yield to - first;
  }
}

function* compare(a: Blocks, b: Blocks, first: number, end: number, totals: Totals): Steps {
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    const [blocksA, blocksB] = [a, b].map((blocks) => ({
      type: blocks.format.id,
      blocks: about(blocks.path, () => blocks.take(from, to - from)),
      bigEndian: blocks.bigEndian,
    })) as [kernels.ComparedBlocks, kernels.ComparedBlocks];
    totals.of = kernels.compare(blocksA, blocksB, totals.of);
    yield to - first;
  }
}

/** Stops at the first difference. */
function* compareBytes(a: Blocks, b: Blocks, first: number, end: number, totals: Totals): Steps {
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    const [bytesA, bytesB] = [a, b].map((blocks) => about(blocks.path, () => blocks.take(from, to - from)));
    if (!haveSameBytes(bytesA as Uint8Array, bytesB as Uint8Array)) {
      totals.of = Float64Array.of(1);
      return;
    }
    yield to - first;
  }
}

/** Statistics and comparisons as jobs. */
function startTotals(
  sources: readonly Blocks[],
  count: number,
  before: Float64Array,
  work: (totals: Totals) => Steps,
  onProgress: ProgressCallback | undefined,
): Started<Float64Array> {
  const totals = { of: before.slice() };
  const steps = work(totals);
  return startOn(sources, { steps, total: count, finish: () => totals.of }, onProgress, count <= SMALL_NUMBERS);
}

function blocksOfBoth(
  [fileA, indexA]: readonly [NativeFile, number],
  [fileB, indexB]: readonly [NativeFile, number],
  first: number,
  end: number,
): [Blocks, Blocks] {
  const both: [Blocks, Blocks] = [blocksOfTensor(fileA, indexA), blocksOfTensor(fileB, indexB)];
  for (const blocks of both) about(blocks.path, () => blocks.check(first, end - first));
  return both;
}

function comparisonNow(work: typeof compare): NativeAddon["compare"] {
  return (fileA, indexA, fileB, indexB, first, end, totals) => {
    const [a, b] = blocksOfBoth([fileA, indexA], [fileB, indexB], first, end);
    const joined = { of: totals.slice() };
    for (const _ of work(a, b, first, end, joined)); // whose errors say which of the two they are about
    return joined.of;
  };
}

function comparison(work: typeof compare): NativeAddon["compareAsync"] {
  return (fileA, indexA, fileB, indexB, first, end, totals, onProgress) => {
    const [a, b] = blocksOfBoth([fileA, indexA], [fileB, indexB], first, end);
    return startTotals([a, b], end - first, totals, (joined) => work(a, b, first, end, joined), onProgress);
  };
}

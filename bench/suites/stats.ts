/**
 * Statistics, without and with a histogram of 256 bins, the test for finite values and comparisons of a file in the page
 * cache, on one thread, compared with dequantizing the same file into memory that stays in the cache: what looking at every
 * value costs in addition to making it. `compare` has no synchronous form: it takes all threads, and two tensors.
 */

import { type GgmlType, ggmlTypes, openSync } from "gguf-native";
import { countNotFiniteSync } from "#dist/file/tensor";
import { type Context, chosenTypes, compete, KIB, MIB, makeOut, patience } from "../context";
import { progress } from "../table";
import { gaussianBlocks, writeTensors } from "../weights";

export async function runStats(context: Context): Promise<void> {
  await measureStats(context, chosenTypes(context));
  const sides = ["dequantize", "stats", "histogram", "finite", "compare"];
  context.results.compare("Looking at every value of a file in the page cache", { task: "stats" }, "Gweights/s", sides);
}

/** Measures and prints nothing. */
export async function measureStats(context: Context, types: readonly GgmlType[]): Promise<void> {
  // With less than 4 M, waking threads counts; with more, calls are long enough to be disturbed by other programs.
  const weights = context.options.quick ? 4 * MIB : 64 * MIB;
  const out = makeOut(256 * KIB);
  for (const type of types) {
    progress(`statistics of ${type}`);
    const shape = [4096, weights / 4096];
    const bytes = gaussianBlocks(type, weights);
    // The other tensor is the same with other bits in the first byte of each block: as many values, other ones.
    const other = bytes.map((byte, i) => (i % ggmlTypes[type].typeSize === 0 ? byte ^ 1 : byte));
    using file = openSync(
      writeTensors("stats.gguf", [
        { name: "a", type, shape, bytes },
        { name: "b", type, shape, bytes: other },
      ]),
    );
    const [a, b] = [file.tensor("a"), file.tensor("b")];
    const dequantize = (): void => {
      for (let start = 0; start < weights; start += out.length) {
        a.dequantizeSync({ start, end: start + out.length, out });
      }
    };
    const contenders = [
      { name: "dequantize", run: dequantize },
      { name: "stats", run: () => a.statsSync({ threads: 1 }) },
      { name: "histogram", run: () => a.statsSync({ threads: 1, bins: 256, range: [-0.1, 0.1] }) },
      { name: "finite", run: () => countNotFiniteSync(a) },
      { name: "compare", run: () => a.compare(b), repeats: 2 },
    ];
    await compete(context, { task: "stats", subject: type, weights }, contenders, patience(context, 4, 0.6));
  }
  progress("");
}

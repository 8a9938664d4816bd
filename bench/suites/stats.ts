/**
 * Statistics, the test for finite values and comparisons of a file in the page cache, compared with dequantizing the same
 * file into memory that stays in the cache: what looking at every value costs in addition to making it.
 */
import { writeFileSync } from "node:fs";
import { cpu, type GgufTensor, ggmlTypes, openSync } from "gguf-native";
import { writeGguf } from "../../test/support/gguf-writer";
import { type Context, chosenTypes, compete, KIB, MIB, makeOut } from "../context";
import { temporaryFile } from "../paths";
import { digits, printTable, progress } from "../table";
import { gaussianBlocks } from "../weights";

/** Not public: what the command `verify` uses. */
type Countable = GgufTensor & { countNotFiniteSync(): unknown };

export async function runStats(context: Context): Promise<void> {
  const { results, options } = context;
  const { threads } = cpu();
  const weights = options.quick ? 8 * MIB : 64 * MIB;
  const out = await makeOut(256 * KIB);
  const rows = [];
  for (const type of chosenTypes(context)) {
    progress(`statistics of ${type}`);
    const shape = [4096, weights / 4096];
    const bytes = gaussianBlocks(type, weights);
    // The other tensor is the same with other bits in the first byte of each block: as many values, other ones.
    const other = bytes.map((byte, i) => (i % ggmlTypes[type].typeSize === 0 ? byte ^ 1 : byte));
    const tensors = [bytes, other].map((bytes, i) => ({
      name: `${i}`,
      type: ggmlTypes[type].id,
      shape,
      bytes,
    }));
    const path = temporaryFile("stats.gguf");
    writeFileSync(path, writeGguf({ tensors }));
    using file = openSync(path);
    const [a, b] = [file.tensor("0") as Countable, file.tensor("1")];
    const dequantize = (): void => {
      for (let start = 0; start < weights; start += out.length) {
        a.dequantizeSync({ start, end: start + out.length, out });
      }
    };
    const timings = await compete(
      results,
      (side) => ({ task: "stats", subject: type, side, weights, threads: side === "compare" ? threads : 1 }),
      [
        { name: "dequantize", run: dequantize },
        { name: "stats", run: () => a.statsSync({ threads: 1 }) },
        { name: "finite", run: () => a.countNotFiniteSync() },
        // Two tensors.
        { name: "compare", run: () => a.compare(b), repeats: 2 },
      ],
      { budget: options.quick ? 0.6 : 4, minRounds: options.quick ? 3 : 5 },
    );
    const best = (side: string): number => timings.get(side)?.best ?? Number.NaN;
    const speed = (side: string): string => digits(weights / best(side) / 1e9);
    const share = (side: string, by = 1): string => digits(best("dequantize") / best(side) / by);
    rows.push([
      type,
      speed("dequantize"),
      ...[speed("stats"), share("stats")],
      ...[speed("finite"), share("finite")],
      ...[speed("compare"), share("compare", threads)],
    ]);
  }
  progress("");
  printTable(
    `A file in the page cache, Gweights/s; shares of dequantizing into 256 KiB. One thread; compare: ${threads}, weights of both`,
    ["type", "dequantize", "stats", "share", "finite", "share", "compare", "share"],
    rows,
  );
}

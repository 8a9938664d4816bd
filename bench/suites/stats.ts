/**
 * Statistics, without and with a histogram of 256 bins, the test for finite values and comparisons of a file in the page
 * cache, compared with dequantizing the same file into memory that stays in the cache: what looking at every value costs
 * in addition to making it.
 */
import { writeFileSync } from "node:fs";
import { cpu, type GgufTensor, ggmlTypes, openSync } from "gguf-native";
import { writeGguf } from "../../test/support/gguf-writer";
import { type Context, chosenTypes, compete, KIB, MIB, makeOut } from "../context";
import { temporaryFile } from "../paths";
import type { Results } from "../results";
import { digits, printTable, progress } from "../table";
import { gaussianBlocks } from "../weights";

/** Not public: what the command `verify` uses. */
type Countable = GgufTensor & { countNotFiniteSync(): unknown };

export const STATS_SIDES = ["stats", "histogram", "finite", "compare"] as const;
export type StatsSide = (typeof STATS_SIDES)[number];

export async function runStats(context: Context): Promise<void> {
  await runStatsTypes(context);
  printStats(context);
}

/** Measures `types` and prints nothing. */
export async function runStatsTypes(context: Context, types = chosenTypes(context)): Promise<void> {
  const { results, options } = context;
  const { threads } = cpu();
  const weights = options.quick ? 32 * MIB : 64 * MIB; // less, and waking threads counts
  const out = await makeOut(256 * KIB);
  for (const type of types) {
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
    await compete(
      results,
      (side) => ({ task: "stats", subject: type, side, weights, threads: side === "compare" ? threads : 1 }),
      [
        { name: "dequantize", run: dequantize },
        { name: "stats", run: () => a.statsSync({ threads: 1 }) },
        { name: "histogram", run: () => a.statsSync({ threads: 1, bins: 256, range: [-0.1, 0.1] }) },
        { name: "finite", run: () => a.countNotFiniteSync() },
        // Two tensors.
        { name: "compare", run: () => a.compare(b), repeats: 2 },
      ],
      { budget: options.quick ? 0.6 : 4, minRounds: options.quick ? 3 : 5 },
    );
  }
  progress("");
}

/** The speed of a thread as a share of dequantizing. */
export function statsShare(results: Results, subject: string, side: StatsSide): number | undefined {
  const dequantize = results.best({ task: "stats", subject, side: "dequantize" });
  const looking = results.best({ task: "stats", subject, side });
  if (dequantize === undefined || looking === undefined) return undefined;
  return dequantize / looking / (side === "compare" ? cpu().threads : 1);
}

function printStats(context: Context): void {
  const { results } = context;
  const rows = results.all({ task: "stats", side: "dequantize" }).map(({ subject, weights, best }) => {
    const speed = (seconds: number | undefined): string => digits((weights as number) / seconds! / 1e9);
    return [
      subject,
      speed(best),
      ...STATS_SIDES.flatMap((side) => [
        speed(results.best({ task: "stats", subject, side })),
        digits(statsShare(results, subject, side)!),
      ]),
    ];
  });
  printTable(
    `A file in the page cache, Gweights/s; shares of dequantizing into 256 KiB. One thread; compare: ${cpu().threads}, weights of both`,
    ["type", "dequantize", ...STATS_SIDES.flatMap((side) => [side, "share"])],
    rows,
  );
}

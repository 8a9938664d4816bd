/**
 * Numbers to blocks of every type, on one thread: gaussian weights in the cache, with importance and, where a type can do
 * without, without it; beside libggml's `ggml_quantize_chunk`.
 */
import { dequantizeSync, ggmlTypes, type QuantizableType, quantizeSync } from "gguf-native";
import { Random } from "../../test/support/random";
import { type Context, chosenTypes, compete } from "../context";
import type { Contender } from "../measure";
import type { Results } from "../results";
import { digits, printTable, progress } from "../table";

export const QUANTIZE_WAYS = ["plain", "importance"] as const;
export type QuantizeWay = (typeof QUANTIZE_WAYS)[number];

const random = new Random(5);

const COLUMNS = 4096;
/** So slow, per weight, that a few rows are enough. */
const SLOW = /^IQ[123]/;

export async function runQuantize(context: Context): Promise<void> {
  await runQuantizeTypes(context);
  printQuantize(context.results);
}

/** Measures `types` and prints nothing. */
export async function runQuantizeTypes(context: Context, types = chosenTypes(context)): Promise<void> {
  const { results, options, libggml } = context;
  const importance = Float32Array.from({ length: COLUMNS }, () => random.gaussian() ** 2);
  for (const type of types as QuantizableType[]) {
    progress(`blocks of ${type}`);
    const weights = (SLOW.test(type) ? 1 : 16) * COLUMNS;
    const numbers = Float32Array.from({ length: weights }, () => 0.02 * random.gaussian());
    const { blockSize, typeSize } = ggmlTypes[type];
    const out = new Uint8Array((weights / blockSize) * typeSize);
    for (const way of QUANTIZE_WAYS) {
      const its = way === "importance" ? importance : undefined;
      const run = (): unknown =>
        quantizeSync(type, numbers, { columns: COLUMNS, importance: its, out, threads: 1 });
      if (!runs(run)) continue;
      const contenders: Contender[] = [{ name: "native", run }];
      const ggml = libggml?.quantizer(type);
      if (ggml) contenders.push({ name: "libggml", run: () => ggml(numbers, out, COLUMNS, its) });
      await compete(
        results,
        (side) => ({ task: `quantize, ${way}`, subject: type, side, weights }),
        contenders,
        {
          budget: options.quick ? 0.4 : 2,
          minRounds: 3,
        },
      );
    }
  }
  progress("");
}

/** Whether the type can be encoded, in this way. */
function runs(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_GGUF_UNSUPPORTED_TYPE") return false;
    throw error;
  }
}

/** How many times faster than libggml. */
export function quantizeRatio(results: Results, subject: string, way: QuantizeWay): number | undefined {
  const native = results.best({ task: `quantize, ${way}`, subject, side: "native" });
  const libggml = results.best({ task: `quantize, ${way}`, subject, side: "libggml" });
  return native === undefined || libggml === undefined ? undefined : libggml / native;
}

/** What the types that were measured lose of gaussian weights, but for those of 8 bits and more a weight. */
export function quantizeErrors(results: Results): { subject: string; bits: number; snr: number }[] {
  const random = new Random(6);
  const numbers = Float32Array.from({ length: 64 * COLUMNS }, () => random.gaussian());
  const importance = new Float32Array(COLUMNS).fill(1);
  const measured = QUANTIZE_WAYS.flatMap((way) => results.all({ task: `quantize, ${way}`, side: "native" }));
  return [...new Set(measured.map(({ subject }) => subject))].flatMap((subject) => {
    const type = subject as QuantizableType;
    const { blockSize, typeSize } = ggmlTypes[type];
    const bits = (8 * typeSize) / blockSize;
    if (bits > 7) return [];
    const found = dequantizeSync(type, quantizeSync(type, numbers, { columns: COLUMNS, importance }));
    let signal = 0;
    let noise = 0;
    for (const [i, number] of numbers.entries()) {
      signal += number ** 2;
      noise += (number - found[i]!) ** 2;
    }
    return [{ subject, bits, snr: 10 * Math.log10(signal / noise) }];
  });
}

function printQuantize(results: Results): void {
  const subjects = QUANTIZE_WAYS.flatMap((way) =>
    results
      .all({ task: `quantize, ${way}`, side: "native" })
      .map(({ subject, weights }) => ({ subject, weights })),
  );
  const weightsOf = new Map(subjects.map(({ subject, weights }) => [subject, weights as number]));
  const rows = [...weightsOf].map(([subject, weights]) => [
    subject,
    ...QUANTIZE_WAYS.flatMap((way) => {
      const ns = (side: string): string => {
        const seconds = results.best({ task: `quantize, ${way}`, subject, side });
        return seconds === undefined ? "" : digits((seconds / weights) * 1e9);
      };
      const ratio = quantizeRatio(results, subject, way);
      return [ns("native"), ns("libggml"), ratio === undefined ? "" : digits(ratio)];
    }),
  ]);
  printTable(
    "Numbers to blocks on one thread: ns per weight, and times libggml; without and with importance",
    ["type", "native", "libggml", "times", "importance: native", "libggml", "times"],
    rows,
  );
}

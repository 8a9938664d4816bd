/**
 * Numbers to blocks of every type, on one thread: gaussian weights in the cache, with importance and, where a type can do
 * without, without it; beside libggml's `ggml_quantize_chunk`.
 */
import { dequantizeSync, type GgmlType, ggmlTypes, type QuantizableType, quantizeSync } from "gguf-native";
import { Random } from "../../test/support/random";
import { type Context, chosenTypes, compete, patience } from "../context";
import type { Contender } from "../measure";
import type { Results } from "../results";
import { progress } from "../table";
import { bytesOf, gaussians } from "../weights";

export const QUANTIZE_TASKS = ["quantize", "quantize, importance"] as const;

const COLUMNS = 4096;
/** So slow, per weight, that a few rows are enough. */
const SLOW = /^IQ[123]/;
/** Those that cannot do without importance. */
const NEED_IMPORTANCE: readonly string[] = ["IQ1_S", "IQ2_XXS", "IQ2_XS"];

export async function runQuantize(context: Context): Promise<void> {
  await measureQuantize(context, chosenTypes(context));
  for (const task of QUANTIZE_TASKS) {
    const title = `Numbers to blocks${task === "quantize" ? "" : " with importance"}, one thread`;
    context.results.compare(title, { task }, "ns per weight", ["native", "libggml"]);
  }
}

/** Measures and prints nothing. */
export async function measureQuantize(context: Context, types: readonly GgmlType[]): Promise<void> {
  const random = new Random(5);
  const weightsOfColumns = Float32Array.from({ length: COLUMNS }, () => random.gaussian() ** 2);
  for (const type of types as QuantizableType[]) {
    progress(`blocks of ${type}`);
    const weights = (SLOW.test(type) ? 1 : 16) * COLUMNS;
    const numbers = gaussians(weights).slice();
    const out = new Uint8Array(bytesOf(type, weights));
    const ggml = context.libggml?.quantizer(type);
    for (const task of QUANTIZE_TASKS) {
      const importance = task === "quantize" ? undefined : weightsOfColumns;
      if (importance === undefined && NEED_IMPORTANCE.includes(type)) continue;
      const options = { columns: COLUMNS, importance, out, threads: 1 };
      const contenders: Contender[] = [{ name: "native", run: () => quantizeSync(type, numbers, options) }];
      if (ggml) contenders.push({ name: "libggml", run: () => ggml(numbers, out, COLUMNS, importance) });
      await compete(context, { task, subject: type, weights }, contenders, patience(context, 2, 0.4));
    }
  }
  progress("");
}

/** What the types that were measured lose of gaussian weights, but for those of 8 bits and more a weight. */
export function quantizeErrors(results: Results): { subject: string; bits: number; snr: number }[] {
  const numbers = gaussians(64 * COLUMNS);
  const importance = new Float32Array(COLUMNS).fill(1);
  return results.subjects({ task: QUANTIZE_TASKS[1] }).flatMap((subject) => {
    const type = subject as QuantizableType;
    const bits = (8 * ggmlTypes[type].typeSize) / ggmlTypes[type].blockSize;
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

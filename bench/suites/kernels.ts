/**
 * The native kernels compared with the TypeScript reference, with ggml, and with the machine's limits. Each type at
 * three output sizes, on one thread, into reused memory. All contenders run in turns, in one process.
 */
import { dequantizeSync, type GgmlType, ggmlTypes } from "gguf-native";
import * as reference from "gguf-native/reference";
import { type Context, chosenTypes, compete, hasReference, KIB, MIB, makeOut } from "../context";
import type { LibggmlFunction } from "../libggml";
import { LIMITS } from "../limits";
import type { Contender, Patience } from "../measure";
import type { Results } from "../results";
import { digits, gigabytes, printTable, progress, size, times } from "../table";
import { gaussianBlocks } from "../weights";

/** Outputs that fit in the first-level cache, in the second-level cache, and only in memory. */
export function outputSizes(quick: boolean): [first: number, second: number, memory: number] {
  return [16 * KIB, 256 * KIB, quick ? 64 * MIB : 256 * MIB];
}

/**
 * Small outputs cycle through this many weights. If the weights were always the same few, the processor would learn the
 * branches of a decoder.
 */
const SOURCE_ELEMENTS = 256 * KIB;

export async function runKernels(context: Context, types = chosenTypes(context)): Promise<void> {
  const { quick } = context.options;
  for (const bytes of outputSizes(quick)) {
    // The limits use the same output memory. `copied` is the source of the copy limit.
    const out = await makeOut(bytes);
    const copied = context.limits && (await makeOut(bytes));
    for (const type of types) {
      progress(`${type}, ${size(bytes)}`);
      await compare(context, type, out, copied);
    }
  }
  progress("");
}

function patienceFor(bytes: number, quick: boolean): Patience {
  if (bytes <= MIB) return { budget: quick ? 0.2 : 0.6, minRounds: 10 };
  return { budget: quick ? 0.6 : 2, minRounds: 8 };
}

/** A contender that decodes blocks. */
export interface Decoder {
  name: string;
  run: (blocks: Uint8Array) => unknown;
  maxRounds?: number;
}

async function compare(
  { options, results, libggml, limits }: Context,
  type: GgmlType,
  out: Float32Array,
  copied: Float32Array | undefined,
): Promise<void> {
  const bytes = out.byteLength;
  const into = { out };
  const decoders: Decoder[] = [{ name: "native", run: (blocks) => dequantizeSync(type, blocks, into) }];
  if (options.suites.has("native-vs-ts") && hasReference(type)) {
    const run = (blocks: Uint8Array) => reference.dequantizeSync(type, blocks, into);
    decoders.push({ name: "typescript", run, ...(bytes > MIB && { maxRounds: 2 }) });
  }
  const peer = libggml?.dequantizer(type);
  if (peer) decoders.push({ name: "libggml", run: (blocks) => peer(blocks, out) });
  const windows = makeWindows(type, out.length);
  expectSameResult(type, decoders, windows[0]!, out);

  const contenders: Contender[] = decoders.map((decoder) => inTurns(decoder, windows));
  if (limits && copied) contenders.push(...LIMITS.map((limit) => limits.contender(limit, out, copied)));
  if (bytes <= 16 * KIB) await measureEmptyCalls(results, type, peer, options.quick);
  const limitNames: readonly string[] = LIMITS;
  await compete(
    results,
    (side) => ({ task: limitNames.includes(side) ? "limit" : "dequantize", subject: type, side, bytes }),
    contenders,
    patienceFor(bytes, options.quick),
  );
}

/** Checks that all results have the same bits. If not, prints an error and sets exit code 1. */
function expectSameResult(
  type: GgmlType,
  [first, ...others]: readonly Decoder[],
  blocks: Uint8Array,
  out: Float32Array,
): void {
  const bits = new Uint32Array(out.buffer, out.byteOffset, Math.min(out.length, SOURCE_ELEMENTS));
  first!.run(blocks);
  const expected = bits.slice();
  for (const { name, run } of others) {
    bits.fill(0);
    run(blocks);
    if (bits.every((value, i) => value === expected[i])) continue;
    console.error(`${type}: ${name} and native give different results`);
    process.exitCode = 1;
  }
}

/** Measures calls for no weights. This cost is subtracted where it would be a large part of the time. */
async function measureEmptyCalls(
  results: Results,
  type: GgmlType,
  peer: LibggmlFunction | undefined,
  quick: boolean,
): Promise<void> {
  const blocks = new Uint8Array(0);
  const out = new Float32Array(0);
  const into = { out };
  const contenders: Contender[] = [{ name: "native", run: () => void dequantizeSync(type, blocks, into) }];
  if (peer !== undefined) contenders.push({ name: "libggml", run: () => peer(blocks, out) });
  const key = (side: string) => ({ task: "empty call", subject: type, side });
  await compete(results, key, contenders, { budget: quick ? 0.02 : 0.1, minRounds: 10 });
}

/** Splits enough random blocks into windows of `elements` weights each. */
export function makeWindows(type: GgmlType, elements: number): Uint8Array[] {
  const { blockSize, typeSize } = ggmlTypes[type];
  const source = gaussianBlocks(type, Math.max(elements, SOURCE_ELEMENTS));
  const length = (elements / blockSize) * typeSize;
  return Array.from({ length: source.length / length }, (_, i) =>
    source.subarray(i * length, (i + 1) * length),
  );
}

/** Uses the next window in each call. */
export function inTurns({ run, ...rest }: Decoder, windows: readonly Uint8Array[]): Contender {
  let next = 0;
  return {
    ...rest,
    run: () => {
      run(windows[next]!);
      next = (next + 1) % windows.length;
    },
  };
}

/**
 * Seconds to decode the weights. At 16 KiB of output, the time of the call is subtracted. Undefined if that is not
 * possible, because the call for no elements took as long.
 */
export function kernelSeconds(
  results: Results,
  subject: string,
  side: string,
  bytes: number,
): number | undefined {
  const seconds = results.best({ task: "dequantize", subject, side, bytes });
  if (seconds === undefined || bytes > 16 * KIB) return seconds;
  const call = results.best({ task: "empty call", subject, side }) ?? 0;
  return seconds > call ? seconds - call : undefined;
}

/**
 * The machine's limit, in seconds: the best of all comparisons. The limit does not depend on the type, and a limit that
 * was disturbed would give shares above 1.
 */
export function limitSeconds(results: Results, bytes: number): number | undefined {
  const found = results.all({ task: "limit", side: limitFor(bytes), bytes }).map(({ best }) => best);
  return found.length === 0 ? undefined : Math.min(...found);
}

/** The limit that outputs of this size are compared with. */
export function limitFor(bytes: number): "store" | "stream" {
  return bytes > MIB ? "stream" : "store";
}

export function printKernels({ results, options, limits }: Context): void {
  for (const bytes of outputSizes(options.quick)) {
    const found = results.all({ task: "dequantize", side: "native", bytes });
    const limit = limitFor(bytes);
    const rows = found.map(({ subject }) => {
      const seconds = (side: string) => kernelSeconds(results, subject, side, bytes);
      const fast = seconds("native");
      const bound = limitSeconds(results, bytes);
      return [
        subject,
        gigabytes(bytes, fast),
        gigabytes(bytes, seconds("typescript")),
        times(seconds("typescript"), fast),
        gigabytes(bytes, seconds("libggml")),
        times(seconds("libggml"), fast),
        gigabytes(bytes, bound),
        bound === undefined || fast === undefined ? undefined : digits(bound / fast),
      ];
    });
    const calls = bytes <= 16 * KIB ? ", without the time of the call" : "";
    printTable(
      `${size(bytes)} of output, GB/s${calls} (${results.machine.isa}, one thread)`,
      ["type", "native", "TypeScript", "ratio", "libggml", "ratio", `${limit} limit`, "share"],
      rows,
    );
    printLimits(results, bytes, limits?.width);
  }
}

function printLimits(results: Results, bytes: number, width: string | undefined): void {
  const figures = LIMITS.map((limit) => {
    const seconds = results.all({ task: "limit", side: limit, bytes }).map(({ best }) => best);
    return seconds.length === 0 ? undefined : `${limit} ${gigabytes(bytes, Math.min(...seconds))}`;
  }).filter((figure) => figure !== undefined);
  if (figures.length > 0) console.log(`\n  best limits, ${width} vectors: ${figures.join(", ")} GB/s`);
}

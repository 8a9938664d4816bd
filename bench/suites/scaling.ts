/** How the speed depends on the size of the output, and on the number of threads. */
import { fork } from "node:child_process";
import { freemem } from "node:os";
import { join } from "node:path";
import { dequantizeSync, type GgmlType } from "gguf-native";
import { type Context, chosenTypes, compete, GIB, KIB, MIB, makeOut, threadCounts } from "../context";
import type { Contender } from "../measure";
import type { Measurement } from "../results";
import { digits, gigabytes, printTable, size, times } from "../table";
import { type Decoder, inTurns, makeWindows } from "./kernels";
import type { ThreadsRequest } from "./threads-child";

export async function runScaling(context: Context): Promise<void> {
  for (const type of chosenTypes(context, ["Q4_K"])) {
    await runSizes(context, type);
    await runThreads(context, type);
  }
}

/** 16 KiB, 64 KiB ... 1 GiB, but at most a quarter of the free memory: blocks and other programs need room, too. */
function outputSizes(quick: boolean): number[] {
  const most = Math.min(quick ? 64 * MIB : GIB, freemem() / 4);
  const sizes = [];
  for (let bytes = 16 * KIB; bytes <= most; bytes *= 4) sizes.push(bytes);
  return sizes;
}

async function runSizes({ options, results, libggml, limits }: Context, type: GgmlType): Promise<void> {
  const rows = [];
  for (const bytes of outputSizes(options.quick)) {
    const out = await makeOut(bytes);
    const peer = libggml?.dequantizer(type);
    const decoders: Decoder[] = [{ name: "native", run: (blocks) => dequantizeSync(type, blocks, { out }) }];
    if (peer) decoders.push({ name: "libggml", run: (blocks) => peer(blocks, out) });
    const windows = makeWindows(type, out.length);
    const contenders: Contender[] = decoders.map((decoder) => inTurns(decoder, windows));
    if (limits) contenders.push(limits.contender("store", out, out), limits.contender("stream", out, out));
    const patience = { budget: options.quick ? 0.15 : 1, minRounds: options.quick ? 3 : 6 };
    const key = (side: string) => ({ task: "scaling by size", subject: type, side, bytes, threads: 1 });
    const timings = await compete(results, key, contenders, patience);
    const sides = ["native", "libggml", "store", "stream"];
    rows.push([size(bytes), ...sides.map((side) => gigabytes(bytes, timings.get(side)?.best))]);
  }
  printTable(
    `${type} by size of the output, calls included, GB/s, one thread`,
    ["output", "native", "libggml", "plain stores", "streaming stores"],
    rows,
  );
}

/** Starts a process for each number of threads, because it is fixed when a process starts. */
async function runThreads({ options, results }: Context, type: GgmlType): Promise<void> {
  const bytes = Math.min(
    options.quick ? 64 * MIB : 256 * MIB,
    4 ** Math.floor(Math.log(freemem() / 4) / Math.log(4)),
  );
  const rows = [];
  for (const threads of threadCounts()) {
    const found = await inChild({ type, bytes, threads, quick: options.quick });
    for (const { best, median, rounds, ...key } of found) results.add(key, { best, median, rounds });
    const time = (side: string) => found.find((one) => one.side === side)?.best;
    const limit = time("stream");
    const fast = time("dequantize");
    rows.push([
      String(threads),
      gigabytes(bytes, fast),
      times(time("dequantizeSync"), fast),
      gigabytes(bytes, limit),
      limit === undefined || fast === undefined ? undefined : digits(limit / fast),
    ]);
  }
  printTable(
    `${type}, ${size(bytes)} of output into shared memory: await dequantize()`,
    ["threads", "GB/s", "against dequantizeSync", "streaming stores", "share"],
    rows,
  );
}

function inChild(request: ThreadsRequest): Promise<Measurement[]> {
  // The library uses one thread less.
  const env = { ...process.env, UV_THREADPOOL_SIZE: String(request.threads + 1) };
  const child = fork(join(__dirname, "threads-child.js"), [JSON.stringify(request)], { env });
  return new Promise((resolve, reject) => {
    child.once("message", (found) => resolve(found as Measurement[]));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the child process ended with ${code}`)));
  });
}

/** A child process of `kernels.ts`: measures asynchronous dequantization with a given number of threads. */
import { dequantize, dequantizeSync, type GgmlType } from "gguf-native";
import { answer } from "../child";
import { MachineLimits } from "../limits";
import { race } from "../measure";
import { Results } from "../results";
import { gaussianBlocks } from "../weights";

export interface ThreadsRequest {
  type: GgmlType;
  /** Bytes of output. */
  bytes: number;
  threads: number;
  quick: boolean;
}

answer(async ({ type, bytes, threads, quick }: ThreadsRequest) => {
  const limits = await MachineLimits.load(new Results());
  const blocks = gaussianBlocks(type, bytes / 4);
  const out = new Float32Array(new SharedArrayBuffer(bytes)).fill(1);
  const timings = await race(
    [
      { name: "dequantizeSync", run: () => dequantizeSync(type, blocks, { out }) },
      { name: "dequantize", run: () => dequantize(type, blocks, { out }) },
      ...(limits ? [limits.contender("stream", out, threads)] : []),
    ],
    { budget: quick ? 0.5 : 3, minRounds: 5 },
  );
  return Array.from(timings, ([side, timing]) => ({ side, ...timing }));
});

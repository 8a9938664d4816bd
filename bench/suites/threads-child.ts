/** A child process of `scaling.ts`: measures asynchronous dequantization with a given number of threads. */
import { dequantize, dequantizeSync, type GgmlType } from "gguf-native";
import { MachineLimits } from "../limits";
import { type Contender, race } from "../measure";
import { type Measurement, Results } from "../results";
import { gaussianBlocks } from "../weights";

export interface ThreadsRequest {
  type: GgmlType;
  /** Bytes of output. */
  bytes: number;
  threads: number;
  quick: boolean;
}

async function measure({ type, bytes, threads, quick }: ThreadsRequest): Promise<Measurement[]> {
  const results = new Results();
  const limits = await MachineLimits.load(results);
  const { threads: used } = results.machine;
  if (used !== threads) throw new Error(`${threads} threads were requested, but ${used} are used`);
  const blocks = gaussianBlocks(type, bytes / 4);
  const out = new Float32Array(new SharedArrayBuffer(bytes)).fill(1);
  const contenders: Contender[] = [
    { name: "dequantizeSync", run: () => void dequantizeSync(type, blocks, { out }) },
    { name: "dequantize", run: () => dequantize(type, blocks, { out }) },
    ...(limits ? [limits.contender("stream", out, out, threads)] : []),
  ];
  const timings = await race(contenders, { budget: quick ? 0.5 : 3, minRounds: quick ? 5 : 10 });
  return Array.from(timings, ([side, timing]) => ({
    task: "scaling by threads",
    subject: type,
    side,
    bytes,
    threads,
    ...timing,
  }));
}

measure(JSON.parse(process.argv[2]!) as ThreadsRequest).then(
  (found) => process.send!(found),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);

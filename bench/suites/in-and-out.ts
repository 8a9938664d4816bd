/** Large outputs with different sources of blocks and different kinds of output. One thread. */
import { writeFileSync } from "node:fs";
import { dequantizeSync, type GgmlType, ggmlTypes, openSync } from "gguf-native";
import { writeGguf } from "../../test/support/gguf-writer";
import { type Context, chosenTypes, compete, makeOut } from "../context";
import { temporaryFile } from "../paths";
import { digits, duration, gigabytes, printTable, size } from "../table";
import { gaussianBlocks } from "../weights";
import { outputSizes } from "./kernels";

const SIDES = {
  "memory, reused out": "memory",
  "mapped file, reused out": "mmap",
  "file by reads, reused out": "read",
  "memory, no out": "fresh",
  "memory, f16, reused out": "f16",
  "memory, bf16, reused out": "bf16",
  "streaming-store limit": "stream",
} as const;

export async function runInAndOut(context: Context): Promise<void> {
  const bytes = outputSizes(context.options.quick)[2];
  for (const type of chosenTypes(context, ["Q4_K"])) await runType(context, type, bytes);
}

async function runType({ options, results, limits }: Context, type: GgmlType, bytes: number): Promise<void> {
  const path = temporaryFile(`${type}.gguf`);
  const blocks = gaussianBlocks(type, bytes / 4);
  const tensor = {
    name: "weights",
    type: ggmlTypes[type].id,
    shape: [4096, bytes / 4 / 4096],
    bytes: blocks,
  };
  writeFileSync(path, writeGguf({ tensors: [tensor] }));
  const mapped = openSync(path);
  const read = openSync(path, { access: "read" });
  const out = await makeOut(bytes);
  const halves = new Uint16Array(out.buffer, out.byteOffset, out.length);
  const contenders = [
    { name: "memory", run: () => void dequantizeSync(type, blocks, { out }) },
    { name: "mmap", run: () => void mapped.tensor("weights").dequantizeSync({ out }) },
    { name: "read", run: () => void read.tensor("weights").dequantizeSync({ out }) },
    { name: "fresh", run: () => void dequantizeSync(type, blocks) },
    { name: "f16", run: () => void dequantizeSync(type, blocks, { dtype: "f16", out: halves }) },
    { name: "bf16", run: () => void dequantizeSync(type, blocks, { dtype: "bf16", out: halves }) },
    ...(limits ? [limits.contender("stream", out, out)] : []),
  ];
  const patience = { budget: options.quick ? 0.5 : 4, minRounds: options.quick ? 4 : 8 };
  const timings = await compete(
    results,
    (side) => ({ task: "in and out", subject: type, side, bytes }),
    contenders,
    patience,
  );
  mapped.close();
  read.close();

  const limit = timings.get("stream")?.best;
  const rows = Object.entries(SIDES).map(([label, side]) => {
    const timing = timings.get(side);
    const written = side.endsWith("16") ? bytes / 2 : bytes;
    return [
      label,
      duration(timing?.best),
      gigabytes(written, timing?.best),
      digits(bytes / 4e9 / (timing?.best ?? Number.NaN)),
      limit === undefined || timing === undefined ? undefined : digits(limit / timing.best),
    ];
  });
  printTable(
    `${type} around the kernel, ${size(bytes / 4 / 1024 / 1024).replace(" B", "")} Mi weights, one thread`,
    ["from, to", "time", "GB/s", "Gweights/s", "of the limit"],
    rows.filter(([, time]) => time !== undefined),
  );
}

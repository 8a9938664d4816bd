/**
 * The cost of a call without its kernel: one row of 4,096 elements per call, 512 rows in one call, and the smallest
 * product.
 */
import { writeFileSync } from "node:fs";
import { dequantize, dequantizeSync, type GgmlType, ggmlTypes, matmulSync, openSync } from "gguf-native";
import { writeGguf } from "../../test/support/gguf-writer";
import { Random } from "../../test/support/random";
import { type Context, chosenTypes, compete, makeOut } from "../context";
import type { Contender } from "../measure";
import { temporaryFile } from "../paths";
import { digits, duration, printTable } from "../table";
import { gaussianBlocks } from "../weights";

const ROW = 4096;
const ROWS = 2048;
const MANY = 512;
/** Calls for one row cycle through this many rows: too many for branch prediction, few enough for the caches. */
const HOT_ROWS = 64;

export async function runCalls(context: Context): Promise<void> {
  const types = chosenTypes(context, ["F16", "Q4_0", "Q8_0", "Q4_K", "Q6_K"]);
  for (const type of types) await runCallsOf(context, type);
  printCalls(context, types);
  await runSmallProduct(context);
}

async function runCallsOf({ options, results }: Context, type: GgmlType): Promise<void> {
  const bytes = gaussianBlocks(type, ROW * ROWS);
  const path = temporaryFile(`rows-${type}.gguf`);
  writeFileSync(
    path,
    writeGguf({ tensors: [{ name: "rows", type: ggmlTypes[type].id, shape: [ROW, ROWS], bytes }] }),
  );
  const file = openSync(path);
  const tensor = file.tensor("rows");
  const rowBytes = bytes.length / ROWS;
  const windows = Array.from({ length: HOT_ROWS }, (_, i) =>
    bytes.subarray(i * rowBytes, (i + 1) * rowBytes),
  );
  const out = await makeOut(ROW * 4);
  const shared = new Float32Array(new SharedArrayBuffer(ROW * 4));
  const manyOut = await makeOut(MANY * ROW * 4);
  const none = new Float32Array(0);
  const noBlocks = new Uint8Array(0);
  const random = new Random(3);
  const many = Array.from({ length: MANY }, () => random.below(ROWS));
  const turn = turns(HOT_ROWS);

  const patience = { budget: options.quick ? 0.4 : 1.5, minRounds: 10 };
  const key = (count: number) => (side: string) => ({ task: "call", subject: type, side, count });
  const empty: Contender[] = [
    { name: "dequantizeSync", run: () => void dequantizeSync(type, noBlocks, { out: none }) },
    { name: "tensor.dequantizeSync", run: () => void tensor.dequantizeSync({ start: 0, end: 0, out: none }) },
    { name: "tensor.rowsSync", run: () => void tensor.rowsSync([], { out: none }) },
  ];
  await compete(results, key(0), empty, patience);
  const single: Contender[] = [
    { name: "dequantizeSync", run: () => void dequantizeSync(type, windows[turn()]!, { out }) },
    {
      name: "tensor.dequantizeSync",
      run: () => {
        const start = turn() * ROW;
        tensor.dequantizeSync({ start, end: start + ROW, out });
      },
    },
    { name: "tensor.rowsSync", run: () => void tensor.rowsSync([turn()], { out }) },
    { name: "dequantize", run: () => dequantize(type, windows[turn()]!, { out: shared }) },
  ];
  await compete(results, key(1), single, patience);
  const multiple: Contender[] = [
    { name: "tensor.rowsSync", run: () => void tensor.rowsSync(many, { out: manyOut }) },
    {
      name: "tensor.dequantizeSync",
      run: () => void tensor.dequantizeSync({ start: 0, end: MANY * ROW, out: manyOut }),
    },
  ];
  await compete(results, key(MANY), multiple, patience);
  file.close();
}

function turns(count: number): () => number {
  let next = 0;
  return () => {
    next = (next + 1) % count;
    return next;
  };
}

function printCalls({ results }: Context, types: readonly GgmlType[]): void {
  const best = (subject: string, side: string, count: number) =>
    results.best({ task: "call", subject, side, count });
  const calls = ["dequantizeSync", "tensor.dequantizeSync", "tensor.rowsSync", "dequantize"];
  printTable(
    "One call for a row of 4,096 elements, into out (in brackets: for no elements)",
    ["type", ...calls.map((name) => name.replace("tensor.", "t."))],
    types.map((type) => [
      type,
      ...calls.map((name) => {
        const nothing = duration(best(type, name, 0));
        return `${duration(best(type, name, 1))}${nothing === undefined ? "" : ` (${nothing})`}`;
      }),
    ]),
  );
  printTable(
    "512 rows of 4,096 elements in any order, per row",
    ["type", "512 rows in one call", "512 calls", "512 rows in file order", "one call / file order"],
    types.map((type) => {
      const rows = best(type, "tensor.rowsSync", MANY)!;
      const inOrder = best(type, "tensor.dequantizeSync", MANY)!;
      return [
        type,
        duration(rows / MANY),
        duration(best(type, "tensor.rowsSync", 1)),
        duration(inOrder / MANY),
        digits(rows / inOrder),
      ];
    }),
  );
}

const SMALL_COLUMNS = 32;

/** A row of 32 numbers and a vector: nearly nothing but the call. */
async function runSmallProduct({ options, results }: Context): Promise<void> {
  const type = "F32";
  const bytes = gaussianBlocks(type, SMALL_COLUMNS);
  const path = temporaryFile("small.gguf");
  const tensor = { name: "row", type: ggmlTypes[type].id, shape: [SMALL_COLUMNS, 1], bytes };
  writeFileSync(path, writeGguf({ tensors: [tensor] }));
  const file = openSync(path);
  const row = file.tensor("row");
  const x = (await makeOut(SMALL_COLUMNS * 4)).fill(0.5);
  const out = await makeOut(4);
  const contenders: Contender[] = [
    { name: "matmulSync", run: () => void matmulSync(type, bytes, SMALL_COLUMNS, x, { out }) },
    { name: "tensor.matmulSync", run: () => void row.matmulSync(x, { out }) },
  ];
  const key = (side: string) => ({ task: "call", subject: type, side, weights: SMALL_COLUMNS });
  const timings = await compete(results, key, contenders, {
    budget: options.quick ? 0.2 : 0.6,
    minRounds: 10,
  });
  file.close();
  printTable(
    "One call for the product of one row of 32 F32 numbers with a vector, into out",
    contenders.map(({ name }) => name),
    [contenders.map(({ name }) => duration(timings.get(name)?.best))],
  );
}

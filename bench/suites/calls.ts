/**
 * The cost of a call without its kernel: one row of 4,096 elements per call, 512 rows in one call, and the smallest
 * product.
 */
import { dequantize, dequantizeSync, type GgmlType, matmulSync, openSync } from "gguf-native";
import { Random } from "../../test/support/random";
import { type Context, chosenTypes, compete, makeOut, patience } from "../context";
import { gaussianBlocks, writeTensors } from "../weights";

const ROW = 4096;
const ROWS = 2048;
const MANY = 512;
/** Calls for one row cycle through this many rows: too many for branch prediction, few enough for the caches. */
const HOT_ROWS = 64;
const CALLS = ["dequantizeSync", "tensor.dequantizeSync", "tensor.rowsSync", "dequantize"];

export async function runCalls(context: Context): Promise<void> {
  const { results } = context;
  for (const type of chosenTypes(context, ["F16", "Q4_0", "Q8_0", "Q4_K", "Q6_K"])) await runCallsOf(context, type);
  for (const count of [0, 1]) {
    const what = count === 0 ? "no elements" : `a row of ${ROW} elements`;
    results.compare(`One call for ${what}, with out`, { task: "call", count }, "µs", CALLS);
  }
  const rows = ["one rowsSync, any order", "rowsSync for each row", "in file order"];
  results.compare(`${MANY} rows of ${ROW} elements`, { task: "call", count: MANY }, "µs", rows);
  await runSmallProduct(context);
}

async function runCallsOf(context: Context, type: GgmlType): Promise<void> {
  using file = openSync(writeTensors(`rows-${type}.gguf`, [{ name: "rows", type, shape: [ROW, ROWS] }]));
  const tensor = file.tensor("rows");
  const bytes = tensor.bytes();
  const rowBytes = bytes.length / ROWS;
  const windows = Array.from({ length: HOT_ROWS }, (_, i) => bytes.slice(i * rowBytes, (i + 1) * rowBytes));
  const out = makeOut(ROW * 4);
  const shared = new Float32Array(new SharedArrayBuffer(ROW * 4));
  const manyOut = makeOut(MANY * ROW * 4);
  const none = new Float32Array(0);
  const noBlocks = new Uint8Array(0);
  const random = new Random(3);
  const many = Array.from({ length: MANY }, () => random.below(ROWS));
  let next = 0;
  const turn = () => next++ % HOT_ROWS;
  const range = () => {
    const start = turn() * ROW;
    return { start, end: start + ROW, out };
  };
  const contenders = {
    0: {
      dequantizeSync: () => dequantizeSync(type, noBlocks, { out: none }),
      "tensor.dequantizeSync": () => tensor.dequantizeSync({ start: 0, end: 0, out: none }),
      "tensor.rowsSync": () => tensor.rowsSync([], { out: none }),
    },
    1: {
      dequantizeSync: () => dequantizeSync(type, windows[turn()]!, { out }),
      "tensor.dequantizeSync": () => tensor.dequantizeSync(range()),
      "tensor.rowsSync": () => tensor.rowsSync([turn()], { out }),
      dequantize: () => dequantize(type, windows[turn()]!, { out: shared }),
    },
    [MANY]: {
      "one rowsSync, any order": () => tensor.rowsSync(many, { out: manyOut }),
      "rowsSync for each row": () => many.forEach((row) => void tensor.rowsSync([row], { out })),
      "in file order": () => tensor.dequantizeSync({ start: 0, end: MANY * ROW, out: manyOut }),
    },
  };
  for (const [count, calls] of Object.entries(contenders)) {
    const runners = Object.entries(calls).map(([name, run]) => ({ name, run }));
    await compete(context, { task: "call", subject: type, count: Number(count) }, runners, patience(context, 1.5, 0.4));
  }
}

const SMALL_COLUMNS = 32;

/** A row of 32 numbers and a vector: nearly nothing but the call. */
async function runSmallProduct(context: Context): Promise<void> {
  const blocks = gaussianBlocks("F32", SMALL_COLUMNS);
  const tensors = [{ name: "row", type: "F32" as const, shape: [SMALL_COLUMNS, 1], bytes: blocks }];
  using file = openSync(writeTensors("small.gguf", tensors));
  const row = file.tensor("row");
  const x = makeOut(SMALL_COLUMNS * 4).fill(0.5);
  const out = makeOut(4);
  const contenders = [
    { name: "matmulSync", run: () => matmulSync("F32", blocks, SMALL_COLUMNS, x, { out }) },
    { name: "tensor.matmulSync", run: () => row.matmulSync(x, { out }) },
  ];
  const task = "call of a small product";
  await compete(context, { task, subject: "F32" }, contenders, patience(context, 0.6, 0.2));
  const title = `One call for the product of a row of ${SMALL_COLUMNS} F32 numbers with a vector`;
  context.results.compare(title, { task }, "µs", ["matmulSync", "tensor.matmulSync"]);
}

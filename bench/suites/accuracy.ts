/**
 * How far products are from what binary64 gives: those with rounded vectors, and ggml's, which rounds them in another way.
 * For normally distributed vectors, and for the same with a number in a thousand twenty times as large.
 */
import { dequantizeSync, type GgmlType, ggmlTypes, matmulSync } from "gguf-native";
import { type Context, chosenTypes, makeOut } from "../context";
import { COLUMNS, makeMemory, makeVectors } from "../products";
import { progress } from "../table";
import { bytesOf, fillBlocks } from "../weights";

const ROWS = 256;
const VECTORS = 16;
const OUTLIER_EVERY = 1000;
const OUTLIER = 20;

export async function runAccuracy(context: Context): Promise<void> {
  const normal = makeVectors(VECTORS);
  const outliers = makeVectors(VECTORS);
  for (let i = 500; i < outliers.length; i += OUTLIER_EVERY) outliers[i]! *= OUTLIER;
  const out = makeOut(ROWS * VECTORS * 4);
  const rows: (string | undefined)[][] = [];
  for (const type of chosenTypes(context)) {
    if (ggmlTypes[type].blockSize === 1) continue; // multiplied as they are
    progress(`accuracy of ${type}`);
    const blocks = fillBlocks(type, makeMemory(bytesOf(type, ROWS * COLUMNS)));
    const figures = [normal, outliers].flatMap((x) => errors(context, type, blocks, x, out));
    rows.push([type, ...figures.map((error) => (error === undefined ? undefined : percent(error)))]);
  }
  progress("");
  context.results.table(
    `Errors of products, ${ROWS} rows of ${COLUMNS} weights, ${VECTORS} vectors: the root of the mean square, relative to the products'`,
    ["type", "f32", "int8", "libggml", "outliers: f32", "int8", "libggml"],
    rows,
  );
}

/** The relative errors of exact products, rounded ones and ggml's. */
function errors(
  { libggmlCpu }: Context,
  type: GgmlType,
  blocks: Uint8Array,
  x: Float32Array,
  out: Float32Array,
): (number | undefined)[] {
  const expected = productsInBinary64(dequantizeSync(type, blocks), x);
  const errorOf = (products: Float32Array): number => {
    let [difference, size] = [0, 0];
    for (const [i, product] of expected.entries()) {
      difference += (products[i]! - product) ** 2;
      size += product ** 2;
    }
    return Math.sqrt(difference / size);
  };
  const ours = (["f32", "int8"] as const).map((activations) =>
    errorOf(matmulSync(type, blocks, COLUMNS, x, { activations, out })),
  );
  const peer = libggmlCpu?.product(type, blocks, COLUMNS, x, out);
  if (peer === undefined) return [...ours, undefined];
  peer.run(1);
  const theirs = errorOf(out);
  peer.free();
  return [...ours, theirs];
}

function productsInBinary64(weights: Float32Array, x: Float32Array): Float64Array {
  const products = new Float64Array(VECTORS * ROWS);
  for (let i = 0; i < products.length; i++) {
    const row = (i % ROWS) * COLUMNS;
    const vector = Math.floor(i / ROWS) * COLUMNS;
    let sum = 0;
    for (let c = 0; c < COLUMNS; c++) sum += weights[row + c]! * x[vector + c]!;
    products[i] = sum;
  }
  return products;
}

const percent = (share: number): string => `${(100 * share).toPrecision(3)} %`;

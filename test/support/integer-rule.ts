/**
 * Products with vectors of 8 bits by the rule of docs/sums.md, written down once more: sums in BigInt, and binary32 by
 * `Math.fround`. The levels and scales are the reference's; they must make the numbers that dequantization gives.
 */
import assert from "node:assert/strict";
import { dequantizeSync, type GgmlType, ggmlTypes } from "gguf-native";
import { type Codes, newCodes } from "#dist/reference/decoder";
import { codeDecoders } from "#dist/reference/decoders";

/** Those that share a scale; absent: 32. */
const SHORT_RUNS: ReadonlySet<GgmlType> = new Set<GgmlType>([
  ...(["Q2_K", "Q3_K", "Q6_K", "IQ2_XS", "IQ2_S", "IQ1_M", "NVFP4"] as const),
]);
const WITH_MINIMA: ReadonlySet<GgmlType> = new Set<GgmlType>(["Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"]);

/** Whether a type has codes to be multiplied with integers. */
export const hasCodes = (type: GgmlType): boolean => ggmlTypes[type].blockSize > 1;

function codesOf(type: GgmlType, blocks: Uint8Array): Codes & { run: number } {
  const decoder = codeDecoders[type]!;
  const run = SHORT_RUNS.has(type) ? 16 : 32;
  assert.equal(decoder.run, run);
  assert.equal(decoder.affine ?? false, WITH_MINIMA.has(type));
  const { blockSize, typeSize } = ggmlTypes[type];
  const count = blocks.length / typeSize;
  const codes = newCodes(decoder, count * blockSize);
  decoder.decode(blocks, 0, count, codes);
  for (const [i, number] of dequantizeSync(type, blocks).entries()) {
    const product = Math.fround(codes.scales[Math.floor(i / run)]! * codes.levels[i]!);
    const made = decoder.affine ? Math.fround(product + codes.minima[Math.floor(i / run)]!) : product;
    assert.ok(Object.is(made, number), `${type}: number ${i}`);
  }
  return { ...codes, run };
}

/** The integer that is nearest, of two as near the even one. */
function nearest(x: number): bigint {
  const below = Math.floor(x);
  const odd = Math.abs(below % 2) === 1;
  return BigInt(x - below > 0.5 || (x - below === 0.5 && odd) ? below + 1 : below);
}

function rounded(x: Float32Array): { codes: bigint[]; scales: number[] } {
  const codes: bigint[] = [];
  const scales: number[] = [];
  for (let start = 0; start < x.length; start += 32) {
    const run = x.subarray(start, start + 32);
    const largest = Math.max(...run.map(Math.abs));
    const counts = run.every(Number.isFinite) && largest >= 2 ** -119;
    scales.push(counts ? Math.fround(largest / 127) : run.every(Number.isFinite) ? 0 : Number.NaN);
    const factor = Math.fround(127 / largest);
    for (const number of run) codes.push(counts ? nearest(Math.fround(number * factor)) : 0n);
  }
  return { codes, scales };
}

/** The products of all rows with each vector. */
export function productsByRule(
  type: GgmlType,
  blocks: Uint8Array,
  columns: number,
  x: Float32Array,
): Float32Array {
  const { levels, scales, minima, run } = codesOf(type, blocks);
  const rowCount = levels.length / columns;
  const vectors = Array.from({ length: x.length / columns }, (_, v) =>
    rounded(x.subarray(v * columns, (v + 1) * columns)),
  );
  const products = vectors.flatMap((vector) =>
    Array.from({ length: rowCount }, (_, row) => {
      const p = new Float32Array(16);
      for (let r = 0; r < columns / run; r++) {
        let sum = 0n;
        let ofCodes = 0n;
        for (let c = r * run; c < (r + 1) * run; c++) {
          sum += BigInt(levels[row * columns + c]!) * vector.codes[c]!;
          ofCodes += vector.codes[c]!;
        }
        assert.ok(sum < 2n ** 24n && sum > -(2n ** 24n));
        const at = (row * columns) / run + r;
        const d = vector.scales[Math.floor((r * run) / 32)]!;
        p[r % 16]! += Math.fround(Math.fround(scales[at]! * d) * Number(sum));
        if (minima.length > 0) p[r % 16]! += Math.fround(minima[at]! * Math.fround(d * Number(ofCodes)));
      }
      for (const h of [8, 4, 2, 1]) for (let i = 0; i < h; i++) p[i]! += p[i + h]!;
      return p[0]!;
    }),
  );
  return Float32Array.from(products);
}

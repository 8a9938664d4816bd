/**
 * Products with vectors that are rounded to 8 bits, in plain TypeScript, to the same bits as the native kernels.
 *
 * They have one definition, whatever computes them (see "Products of integers" in docs/sums.md). All arithmetic but that
 * of integers is binary32, each operation rounded on its own:
 *
 *   1. A vector x is cut into runs of 32 columns. a is the largest |x| of a run. If a number of the run is not finite,
 *      d = NaN and all q = 0. Otherwise, if a < 2^-119, d = 0 and all q = 0. Otherwise, d = a / 127, f = 127 / a and
 *      q = x * f, rounded to the nearest integer, halves to even.
 *   2. The weights that share a scale are a run r of 32 columns, or of 16: w * L, or w * L + m, with integers L.
 *      S is the sum of L * q over the run, s the sum of q.
 *   3. There are 16 partial sums p, +0 at first. For r = 0, 1, 2 ...: p[r % 16] += (w * d) * S, and then, if there is an m,
 *      p[r % 16] += m * (d * s).
 *   4. For h = 8, 4, 2, 1: p[i] += p[i + h] for all i < h. The product is p[0].
 */
import { type CodeDecoder, newCodes } from "./decoder";

/** Columns that are rounded together. */
const RUN = 32;
const PARTIAL_SUMS = 16;
const { fround } = Math;

/** A rounded vector. */
interface Rounded {
  codes: Int8Array;
  /** One for each run of 32 columns. */
  scales: Float32Array;
}

/** To the nearest integer, halves to even. */
function roundHalfToEven(x: number): number {
  const shift = 1.5 * 2 ** 52;
  return x + shift - shift;
}

/** Step 1. */
export function roundVector(x: Float32Array): Rounded {
  const codes = new Int8Array(x.length);
  const scales = new Float32Array(x.length / RUN);
  for (let run = 0; run < scales.length; run++) {
    const start = run * RUN;
    let largest = 0; // Math.max of a NaN is NaN
    for (let i = start; i < start + RUN; i++) largest = Math.max(largest, Math.abs(x[i]!));
    if (!Number.isFinite(largest)) {
      scales[run] = Number.NaN;
    } else if (largest >= 2 ** -119) {
      scales[run] = largest / 127;
      const factor = fround(127 / largest);
      for (let i = start; i < start + RUN; i++) codes[i] = roundHalfToEven(fround(x[i]! * factor));
    }
  }
  return { codes, scales };
}

const partials = new Float32Array(PARTIAL_SUMS);

/**
 * The products of `rowCount` rows of blocks with vectors: product v of row r goes to y[v * rowCount + r].
 *
 * @param typeSize bytes of a block
 * @param rowBlocks blocks of a row
 */
export function multiplyCodes(
  decoder: CodeDecoder,
  blocks: Uint8Array,
  typeSize: number,
  rowBlocks: number,
  vectors: readonly Float32Array[],
  rowCount: number,
  y: Float32Array,
): void {
  const columns = vectors[0]?.length ?? 0;
  const { run, affine } = decoder;
  const { levels, scales, minima } = newCodes(decoder, columns);
  const rounded = vectors.map(roundVector);
  for (let row = 0; row < rowCount && rounded.length > 0; row++) {
    decoder.decode(blocks, row * rowBlocks * typeSize, rowBlocks, { levels, scales, minima });
    for (const [v, { codes, scales: runScales }] of rounded.entries()) {
      partials.fill(0);
      for (let r = 0; r < scales.length; r++) {
        let products = 0;
        let sum = 0;
        for (let i = r * run; i < (r + 1) * run; i++) {
          const code = codes[i]!;
          products += levels[i]! * code;
          sum += code;
        }
        const p = r % PARTIAL_SUMS;
        const d = runScales[Math.floor((r * run) / RUN)]!;
        partials[p] = partials[p]! + fround(fround(scales[r]! * d) * products);
        if (affine) partials[p] = partials[p]! + fround(minima[r]! * fround(d * sum));
      }
      for (let half = PARTIAL_SUMS / 2; half >= 1; half /= 2) {
        for (let i = 0; i < half; i++) partials[i] = partials[i]! + partials[i + half]!;
      }
      y[v * rowCount + row] = partials[0]!;
    }
  }
}

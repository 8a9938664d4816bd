/** The wider search: less error than ggml's blocks have, in no block more, and the same bytes on every instruction set. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cpu, dequantizeSync, ggmlTypes, quantizeSync } from "gguf-native";
import { childProgram, lineOf } from "../support/child";
import { quantizeCases } from "../support/quantize-cases";
import { WIDER_TYPES } from "../support/quantize-child";
import { Random } from "../support/random";

type WiderType = (typeof WIDER_TYPES)[number];

/** How errors count in a block: a weight for each number, of squares or of magnitudes. */
interface Objective {
  weights: number[];
  magnitudes: boolean;
}

/** Of the numbers x of a block. */
function objectiveOf(
  type: WiderType,
  x: Float32Array,
  importance: Float32Array | undefined,
  row: Float32Array,
): Objective {
  const mean = (numbers: Float32Array): number => numbers.reduce((sum, v) => sum + v * v, 0) / numbers.length;
  const sigma2 = type === "Q4_0" ? mean(row) : (type === "Q2_K" ? 1 : 2) * mean(x);
  const weights = Array.from(x, (v, i) => {
    const weight = importance?.[i];
    if (type === "Q6_K") return weight ?? v * v;
    if (weight !== undefined) return weight * Math.sqrt(sigma2 + v * v);
    const first = i - (i % 32);
    if (type === "Q4_0") return 1;
    if (type === "Q2_K") return Math.abs(v);
    const isWide = type === "Q4_K" || type === "Q5_K";
    return isWide ? Math.sqrt(mean(x.subarray(first, first + 32))) + Math.abs(v) : v * v;
  });
  return { weights, magnitudes: type === "Q2_K" && importance === undefined };
}

function errorOf({ weights, magnitudes }: Objective, x: Float32Array, decoded: Float32Array): number {
  return weights.reduce((sum, weight, i) => {
    const difference = Math.abs((decoded[i] as number) - (x[i] as number));
    return sum + weight * (magnitudes ? difference : difference * difference);
  }, 0);
}

/** The errors of each block by ggml's search and by the wider one. */
function* errors(
  type: WiderType,
  numbers: Float32Array,
  columns: number,
  importance: Float32Array | undefined,
): Generator<[ggml: number, best: number]> {
  const decoded = (search: "ggml" | "best"): Float32Array =>
    dequantizeSync(type, quantizeSync(type, numbers, { columns, importance, search }));
  const [ggml, best] = [decoded("ggml"), decoded("best")];
  const { blockSize } = ggmlTypes[type];
  for (let at = 0; at < numbers.length; at += blockSize) {
    const inBlock = (all: Float32Array): Float32Array => all.subarray(at, at + blockSize);
    const column = at % columns;
    const row = numbers.subarray(at - column, at - column + columns);
    const weights = importance?.subarray(column, column + blockSize);
    const objective = objectiveOf(type, inBlock(numbers), weights, row);
    yield [errorOf(objective, inBlock(numbers), inBlock(ggml)), errorOf(objective, inBlock(numbers), inBlock(best))];
  }
}

describe("no block has more error than ggml's", () => {
  for (const type of WIDER_TYPES) {
    test(type, () => {
      for (const { name, numbers, columns, importance } of quantizeCases(type, false)) {
        for (const [ggml, best] of errors(type, numbers, columns, importance)) {
          // Where scales are infinite, so is the error.
          if (Number.isFinite(ggml)) assert.ok(best <= ggml * (1 + 1e-6), `${name}: ${best}, not ${ggml}`);
        }
      }
    });
  }
});

// Measured of these numbers: 10.9, 5.0, 12.8, 3.5, 8.3, 15.7, 12.5 and 3.9 %.
const LEAST_GAIN: Record<WiderType, number> = {
  Q4_0: 0.08,
  Q2_K: 0.04,
  Q3_K: 0.1,
  Q4_K: 0.02,
  Q5_K: 0.05,
  Q6_K: 0.1,
  IQ4_NL: 0.1,
  IQ4_XS: 0.03,
};

test("the error of numbers like weights is less", () => {
  const random = new Random(3);
  const bell = (): number => Array.from({ length: 12 }, () => random.unit()).reduce((a, b) => a + b, -6);
  const numbers = Float32Array.from({ length: 64 * 256 }, () => bell() * 0.02);
  for (const type of WIDER_TYPES) {
    let [before, after] = [0, 0];
    for (const [ggml, best] of errors(type, numbers, numbers.length, undefined)) {
      before += ggml;
      after += best;
    }
    assert.ok(after < before * (1 - LEAST_GAIN[type]), `${type}: ${1 - after / before}`);
  }
});

test("a type without a wider search has ggml's bytes", () => {
  const numbers = Float32Array.from({ length: 256 }, (_, i) => Math.sin(i));
  for (const type of ["Q8_0", "Q5_0", "IQ3_S", "F16"] as const) {
    assert.deepEqual(quantizeSync(type, numbers, { search: "best" }), quantizeSync(type, numbers), type);
  }
});

/** Of all cases, with and without importance. */
const GOLDEN: Record<WiderType, string> = {
  Q4_0: "d851ac5044ebd7e7003b7e5320a263bba32d8f5c541b099a1c00c109324322e4",
  Q2_K: "ce5b5f4c7a4ab2c0f868b2a0be9bdaa14f967c2b25555f3852e0438098659357",
  Q3_K: "4e1400b5d5b5dd9a2ace6967a881cfd5921881f908080450889cae2f2ca273f7",
  Q4_K: "fd1712f1321389f7e778a6fd46a65e750fed9df9c66ca2b29caa99f899816a49",
  Q5_K: "a53457f5316e96394c49e30bb5a215b0429bb18ae396a17baff352268c4c9add",
  Q6_K: "50d454f81f05c0ed3da5c0385c1046c7f8ac0eaeb20dbcda81e722a75177da91",
  IQ4_NL: "255dbaa5cfbe83844cc2caf6346f29fb2ff512428a038d6858f0f69033ceba6d",
  IQ4_XS: "86943751aa14036589bf4f08ebea8859afbc3ec28c88f3e62879672b452c5b14",
};

describe("the same bytes everywhere", () => {
  for (const isa of cpu().available) {
    test(isa, async () => {
      const env = { ...process.env, GGUF_NATIVE_ISA: isa };
      const line = await lineOf([childProgram("quantize"), "best"], { env });
      assert.deepEqual((JSON.parse(line) as { hashes: unknown }).hashes, GOLDEN);
    });
  }
});

/** PQ2_0 and PTQ1_0, which ggml does not have: against weights that are encoded here, and the same weights as Q2_0. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { dequantizeSync, type GgmlType, matmulSync, quantizeSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { firstDifference } from "../support/compare";
import { Random } from "../support/random";

const BLOCK = 128;
const random = new Random(142);

/** Scales as binary16: ordinary ones of both signs, 0, the smallest, infinities and a NaN. */
const SCALES = [0x3555, 0xb12f, 0, 0x8000, 1, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e01];
const scaleOf = (block: number) => SCALES[block % SCALES.length]!;

/** Blocks of `size` weights with these codes, after or before the scale of each 128 weights. */
function blocksOf(codes: Uint8Array, size: number, scaleFirst: boolean, pack: (codes: Uint8Array) => number[]) {
  const bytes: number[] = [];
  for (let at = 0; at < codes.length; at += size) {
    const scale = scaleOf(Math.floor(at / BLOCK));
    const d = [scale & 255, scale >> 8];
    const packed = pack(codes.subarray(at, at + size));
    bytes.push(...(scaleFirst ? [...d, ...packed] : [...packed, ...d]));
  }
  return Uint8Array.from(bytes);
}

const pairs = (codes: Uint8Array) =>
  Array.from({ length: codes.length / 4 }, (_, i) =>
    [3, 2, 1, 0].reduce((byte, k) => byte * 4 + (codes[4 * i + k] as number), 0),
  );

/** The byte of each digit of a block of PTQ1_0, and its place among the five that a byte has. */
const places = Array.from({ length: BLOCK }, (_, j) => {
  if (j < 80) return { byte: j % 16, place: Math.floor(j / 16) };
  if (j < 120) return { byte: 16 + (j % 8), place: Math.floor((j - 80) / 8) };
  return { byte: 24 + (j % 2), place: Math.floor((j - 120) / 2) };
});

/** A byte is its digits as a fraction in base 3, in 256ths, rounded up. */
function trits(codes: Uint8Array): number[] {
  const sums = Array.from({ length: 26 }, () => 0);
  for (const [j, { byte, place }] of places.entries()) sums[byte]! += codes[j]! * 3 ** (4 - place);
  return sums.map((sum) => Math.ceil((sum * 256) / 243));
}

const encoders: Partial<Record<GgmlType, (codes: Uint8Array) => Uint8Array>> = {
  PQ2_0: (codes) => blocksOf(codes, BLOCK, true, pairs),
  PTQ1_0: (codes) => blocksOf(codes, BLOCK, false, trits),
};
const asQ2_0 = (codes: Uint8Array) => blocksOf(codes, 64, true, pairs);

for (const [name, encode] of Object.entries(encoders)) {
  const type = name as GgmlType;
  const levels = type === "PQ2_0" ? 4 : 3;
  const codes = Uint8Array.from({ length: 30 * BLOCK }, () => random.below(levels));
  const blocks = encode(codes);

  describe(type, () => {
    test("has the weights that were encoded", () => {
      const scales = reference.dequantizeSync("F16", new Uint8Array(Uint16Array.from(SCALES).buffer));
      const expected = Float32Array.from(
        codes,
        (code, i) => scales[Math.floor(i / BLOCK) % SCALES.length]! * (code - 1),
      );
      for (const decode of [dequantizeSync, reference.dequantizeSync]) {
        assert.equal(firstDifference(decode(type, blocks), expected), -1);
        const bf16 = reference.dequantizeSync("F32", new Uint8Array(expected.buffer), { dtype: "bf16" });
        assert.equal(firstDifference(decode(type, blocks, { dtype: "bf16" }), bf16, "bf16"), -1);
      }
    });
    test("has the products of the same weights as Q2_0", () => {
      const [own, same] = [blocks, asQ2_0(codes)];
      for (const vectors of [1, 2, 5, 40]) {
        const x = Float32Array.from({ length: vectors * 2 * BLOCK }, () => random.gaussian());
        for (const activations of ["f32", "int8"] as const) {
          const expected = matmulSync("Q2_0", same, 2 * BLOCK, x, { activations });
          for (const multiply of [matmulSync, reference.matmulSync]) {
            const found = multiply(type, own, 2 * BLOCK, x, { activations });
            assert.equal(firstDifference(found, expected), -1, `${vectors} vectors, ${activations}`);
          }
        }
      }
    });
    test("cannot be written from numbers", () => {
      const refused = {
        code: "ERR_GGUF_UNSUPPORTED_TYPE",
        message: new RegExp(`cannot make blocks of the tensor type ${type}`),
      };
      for (const quantize of [quantizeSync, reference.quantizeSync]) {
        assert.throws(() => quantize(type as "Q8_0", new Float32Array(BLOCK)), refused);
      }
    });
  });
}

test("PTQ1_0 has digits for every byte", () => {
  for (let byte = 0; byte < 256; byte++) {
    const block = new Uint8Array(28).fill(byte, 0, 26);
    block[27] = 0x3c; // 1
    const expected = Float32Array.from(places, ({ place }) => (Math.floor((byte * 3 ** (place + 1)) / 256) % 3) - 1);
    assert.deepEqual(dequantizeSync("PTQ1_0", block), expected);
    assert.deepEqual(reference.dequantizeSync("PTQ1_0", block), expected);
  }
});

/**
 * Run by itself, on the instruction set that GGUF_NATIVE_ISA names: dequantizes the golden file in every way, and
 * random blocks of every type, and prints what differs, as JSON.
 */
import { cpu, dequantize, dequantizeSync, openSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { randomBlocks } from "./blocks";
import { firstDifference } from "./compare";
import { ALL_TYPES, type GoldenCase, goldenPath, readGolden } from "./golden";
import { Random } from "./random";

type Values = Float32Array | Uint16Array;

const DTYPES = ["f32", "f16", "bf16"] as const;
const failures: string[] = [];
let cases = 0;

function expectSame(what: string, actual: Values, expected: Values, dtype: reference.DType = "f32"): void {
  cases++;
  const at = firstDifference(actual, expected, dtype);
  if (at >= 0) failures.push(`${what}: element ${at} is ${actual[at]}, expected ${expected[at]}`);
}

async function checkGolden(): Promise<void> {
  const mapped = openSync(goldenPath);
  const read = openSync(goldenPath, { access: "read" });
  for (const { name, type, blocks } of readGolden()) {
    const expected = reference.dequantizeSync(type, blocks);
    expectSame(`${name} of a mapped file`, mapped.tensor(name).dequantizeSync(), expected);
    expectSame(`${name} of a file that is read`, read.tensor(name).dequantizeSync(), expected);
    expectSame(`${name} in memory`, dequantizeSync(type, blocks), expected);
    expectSame(`${name} asynchronously`, await mapped.tensor(name).dequantize(), expected);
    expectSame(`${name} read asynchronously`, await read.tensor(name).dequantize(), expected);
    expectSame(`${name} in memory, asynchronously`, await dequantize(type, blocks), expected);
    expectSame(`${name} rows`, mapped.tensor(name).rowsSync([1, 0]), swapHalves(expected));
    for (let shift = 1; shift < 4; shift++) {
      const moved = new Uint8Array(blocks.length + shift).subarray(shift);
      moved.set(blocks);
      expectSame(`${name} at an address + ${shift}`, dequantizeSync(type, moved), expected);
    }
    for (const dtype of ["f16", "bf16"] as const) {
      const rounded = reference.dequantizeSync("F32", bytesOf(expected), { dtype });
      const tensor = mapped.tensor(name);
      expectSame(`${name} as ${dtype}`, tensor.dequantizeSync({ dtype }), rounded, dtype);
      expectSame(`${name} as ${dtype}, async`, await dequantize(type, blocks, { dtype }), rounded, dtype);
      expectSame(`${name} as ${dtype}, reference`, referenceOf(type, blocks, dtype), rounded, dtype);
    }
  }
  mapped.close();
  read.close();
}

/** Against the reference; odd numbers of blocks, so that what is left over after whole vectors counts too. */
function checkRandom(): void {
  const random = new Random(20);
  for (const type of ALL_TYPES) {
    for (const count of [1, 2, 3, 7, 16, 61, 255]) {
      const blocks = randomBlocks(type, count, random);
      for (const dtype of DTYPES) {
        const actual = dequantizeSync(type, blocks, { dtype });
        expectSame(`${count} random blocks of ${type} as ${dtype}`, actual, referenceOf(type, blocks, dtype), dtype);
      }
    }
  }
}

function referenceOf(type: GoldenCase["type"], blocks: Uint8Array, dtype: reference.DType): Values {
  return reference.dequantizeSync(type, blocks, { dtype });
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function swapHalves(values: Float32Array): Float32Array {
  const result = new Float32Array(values.length);
  result.set(values.subarray(values.length / 2));
  result.set(values.subarray(0, values.length / 2), values.length / 2);
  return result;
}

async function main(): Promise<void> {
  await checkGolden();
  checkRandom();
  console.log(JSON.stringify({ isa: cpu().isa, cases, failures: failures.slice(0, 100) }));
}

main();

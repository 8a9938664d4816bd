/** Run by itself, on the set that GGUF_NATIVE_ISA names: prints what of the golden file differs, as JSON. */
import { cpu, dequantize, dequantizeSync, openSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { firstDifference } from "./compare";
import { goldenPath, readGolden } from "./golden";

type Values = Float32Array | Uint16Array;

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
      const itsOwn = reference.dequantizeSync(type, blocks, { dtype });
      expectSame(`${name} as ${dtype}, reference`, itsOwn, rounded, dtype);
    }
  }
  mapped.close();
  read.close();
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
  console.log(JSON.stringify({ isa: cpu().isa, cases, failures: failures.slice(0, 100) }));
}

main();

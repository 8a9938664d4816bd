/**
 * Run by itself, on the instruction set that GGUF_NATIVE_ISA names: multiplies blocks of every type, in every way, and
 * prints what differs from the reference, as JSON. Its argument is a folder for files.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cpu, type GgmlType, ggmlTypes, matmulSync, openSync, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { gaussianBlocks, randomBlocks } from "./blocks";
import { swapBlocks } from "./byte-order";
import { firstDifference } from "./compare";
import { writeGguf } from "./gguf-writer";
import { ALL_TYPES } from "./golden";
import { Random } from "./random";

const ROWS = 13;
const COUNTS = [1, 2, 3, 7, 64];
/** How large numbers are in one run of 32 after the other: ordinary, the smallest that count and some that do not, huge. */
const RUN_SIZES = [1, 1e-3, 2 ** -121, 2 ** -124, 0, 2 ** 100, 20];

const random = new Random(4711);
const failures: string[] = [];
let cases = 0;

function expectSame(what: string, actual: Float32Array, expected: Float32Array): void {
  cases++;
  const at = firstDifference(actual, expected);
  if (at >= 0) failures.push(`${what}: number ${at} is ${actual[at]}, expected ${expected[at]}`);
}

/** Two blocks of 256, or a row that is no multiple of 256. */
const columnsOf = (type: GgmlType): number => (ggmlTypes[type].blockSize === 256 ? 512 : 384);

const matrices = ALL_TYPES.flatMap((type) => {
  const columns = columnsOf(type);
  const count = (ROWS * columns) / ggmlTypes[type].blockSize;
  // Of two vectors, one has ordinary numbers alone.
  const sizeOf = (i: number): number =>
    Math.floor(i / columns) % 2 === 0 ? 1 : RUN_SIZES[Math.floor(i / 32) % RUN_SIZES.length]!;
  const x = Float32Array.from({ length: 64 * columns }, (_, i) => random.gaussian() * sizeOf(i));
  return [gaussianBlocks, randomBlocks].map((make) => {
    const blocks = make(type, count, random);
    return { name: `${type} ${make.name}`, type, columns, blocks, x };
  });
});

const ACTIVATIONS = ["f32", "int8"] as const;

async function main(): Promise<void> {
  const folder = process.argv[2] as string;
  const store = (name: string, order: "little" | "big"): string => {
    const path = join(folder, name);
    const tensors = matrices.map(({ name, type, columns, blocks }) => ({
      name,
      type: ggmlTypes[type].id,
      shape: [columns, ROWS],
      bytes: order === "big" ? swapBlocks(type, blocks) : blocks,
    }));
    writeFileSync(path, writeGguf({ tensors, byteOrder: order }));
    return path;
  };
  const little = store("little.gguf", "little");
  const big = store("big.gguf", "big");
  const files = {
    mapped: openSync(little),
    read: openSync(little, { access: "read" }),
    "in memory": parse(readFileSync(little)),
    "big-endian": openSync(big),
  };
  const matricesTwice = matrices.flatMap((matrix) => ACTIVATIONS.map((activations) => ({ ...matrix, activations })));
  for (const { name: tensorName, type, columns, blocks, x, activations } of matricesTwice) {
    const name = `${tensorName} ${activations}`;
    const options = { activations };
    // What the reference says of the first `n` vectors is a part of what it says of all.
    const all = reference.matmulSync(type, blocks, columns, x, options);
    for (const n of COUNTS) {
      const vectors = x.subarray(0, n * columns);
      expectSame(`${name} x ${n}`, matmulSync(type, blocks, columns, vectors, options), all.subarray(0, n * ROWS));
    }
    for (let shift = 1; shift < 4; shift++) {
      const moved = new Uint8Array(blocks.length + shift).subarray(shift);
      moved.set(blocks);
      const x1 = x.subarray(0, columns);
      expectSame(
        `${name} at an address + ${shift}`,
        matmulSync(type, moved, columns, x1, options),
        all.subarray(0, ROWS),
      );
    }
    for (const [where, file] of Object.entries(files)) {
      const tensor = file.tensor(tensorName);
      for (const n of [1, 7]) {
        const vectors = x.subarray(0, n * columns);
        const whole = all.subarray(0, n * ROWS);
        expectSame(`${name} x ${n}, ${where}`, tensor.matmulSync(vectors, options), whole);
        expectSame(`${name} x ${n}, ${where}, async`, await tensor.matmul(vectors, options), whole);
      }
      // The rows in two parts.
      const x2 = x.subarray(0, 2 * columns);
      const parts = [
        tensor.matmulSync(x2, { ...options, end: 5 }),
        await tensor.matmul(x2, { ...options, start: 5 }),
      ] as const;
      const joined = [0, 1].flatMap((v) => [
        ...parts[0].subarray(v * 5, v * 5 + 5),
        ...parts[1].subarray(v * 8, v * 8 + 8),
      ]);
      expectSame(`${name} in parts, ${where}`, Float32Array.from(joined), all.subarray(0, 2 * ROWS));
    }
  }
  for (const file of Object.values(files)) file.close();
  console.log(JSON.stringify({ isa: cpu().isa, cases, failures: failures.slice(0, 50) }));
}

main();

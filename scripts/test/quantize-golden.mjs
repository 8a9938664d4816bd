// Makes test/fixtures/quantized.gguf: numbers, and the blocks that ggml's reference makes of them, by libggml from the
// npm package of the benchmarks (npm --prefix bench install). Needs a built dist.
import { createRequire } from "node:module";
import { join } from "node:path";
import { root } from "../lib/paths.mjs";

const { GgufWriter, ggmlTypes } = createRequire(import.meta.url)(join(root, "dist", "index.js"));
const { default: koffi } = await import(createRequire(join(root, "bench", "package.json")).resolve("koffi"));
const library = "bench/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-base.so";
const quantizeChunk = koffi
  .load(join(root, library))
  .func("ggml_quantize_chunk", "size_t", [
    "int",
    "void *",
    "void *",
    "int64_t",
    "int64_t",
    "int64_t",
    "void *",
  ]);

const TYPES = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"];
const COUNT = 256;

/** Numbers from 0 to 1 that are the same on every run. */
let state = 20_261_122;
function random() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}
const gaussian = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const sign = () => (random() < 0.5 ? -1 : 1);
const pick = (values) => values[Math.floor(random() * values.length)];
const floatOf = (bits) => new Float32Array(Uint32Array.of(bits).buffer);

const cases = {
  gaussian: () => gaussian() * 0.02,
  uniform: () => random() * 2 - 1,
  positive: () => random(),
  constant: (i) => [1, -3.5, 0.1, 0][i >> 6],
  tiny: () => gaussian() * 1e-37,
  subnormal: () => sign() * Math.floor(random() * 2 ** 23) * 2 ** -149,
  smallest: () => sign() * Math.floor(random() * 32) * 2 ** -149,
  half_subnormal: () => sign() * random() * 2 ** -14,
  huge: () => sign() * random() * 3.4e38,
  mixed: () => sign() * 2 ** Math.floor(random() * 250 - 125) * (1 + random()),
  zeros: () => pick([0, -0]),
  negative_zero: () => -0,
  zeros_and_numbers: () => pick([0, -0, 1e-3 * random()]),
  halfway: () => Math.floor(random() * 255 - 127) / 2,
  infinite: (i) => (i % 37 === 5 ? sign() * Number.POSITIVE_INFINITY : gaussian()),
  not_numbers: (i) => (i % 29 === 3 || i >= 224 ? Number.NaN : gaussian() * (i % 32)),
};

const writer = new GgufWriter().set("general.name", "Numbers, and ggml's blocks of them");
const bitPatterns = new Float32Array(COUNT);
for (let i = 0; i < COUNT; i++) bitPatterns.set(floatOf(Math.floor(random() * 2 ** 32)), i);
const inputs = {
  ...Object.fromEntries(
    Object.entries(cases).map(([name, make]) => [
      name,
      Float32Array.from({ length: COUNT }, (_, i) => make(i)),
    ]),
  ),
  random_bits: bitPatterns,
};
for (const [name, values] of Object.entries(inputs)) {
  writer.addTensor(name, "F32", [COUNT], values);
  for (const type of TYPES) {
    const { id, blockSize, typeSize } = ggmlTypes[type];
    const blocks = new Uint8Array((COUNT / blockSize) * typeSize);
    quantizeChunk(id, values, blocks, 0, 1, COUNT, null);
    writer.addTensor(`${name}.${type}`, type, [COUNT], blocks);
  }
}
await writer.write(join(root, "test", "fixtures", "quantized.gguf"));

// Makes test/fixtures/quantized-hashes.json: of each type that libggml can write, the SHA-256 of its blocks of all cases of
// the tests. Needs the packages of the benchmarks (npm --prefix bench install), and the compiled tests (npm test).
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { root } from "../lib/paths.mjs";

const load = createRequire(import.meta.url);
const support = join(root, "build", "test", "support");
const { libggmlQuantizer } = load(join(support, "libggml.js"));
const { quantizeCases } = load(join(support, "quantize-cases.js"));
const { ggmlTypes } = load(join(root, "dist", "index.js"));

/** What is no type of weights, Q8_1, which ggml only writes for products, and what ggml does not have. */
const NOT_WRITTEN = ["F64", "I8", "I16", "I32", "I64", "Q8_1", "PQ2_0", "PTQ1_0"];
const NEED_IMPORTANCE = ["IQ1_S", "IQ2_XXS", "IQ2_XS"];

const libggml = await libggmlQuantizer();
if (typeof libggml === "string") throw new Error(libggml);
const hashes = {};
for (const name of Object.keys(ggmlTypes).filter((type) => !NOT_WRITTEN.includes(type))) {
  const hash = createHash("sha256");
  for (const { numbers, columns, importance } of quantizeCases(name, NEED_IMPORTANCE.includes(name))) {
    hash.update(libggml(name, numbers, columns, importance));
  }
  hashes[name] = hash.digest("hex");
}
const file = join(root, "test", "fixtures", "quantized-hashes.json");
writeFileSync(file, `${JSON.stringify(hashes, undefined, 2)}\n`);

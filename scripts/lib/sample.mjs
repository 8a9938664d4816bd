// The sample model of the demo and the examples.
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { root } from "./paths.mjs";

const require = createRequire(import.meta.url);

/** Writes a llama in miniature, in a mix of types, with random weights, and returns its path. Needs the tests built. */
export function writeSample() {
  const { sampleModel } = require(join(root, "build", "test", "support", "sample-model.js"));
  const folder = join(root, "build", "demo");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "sample.gguf");
  writeFileSync(file, sampleModel());
  console.error(`Wrote the sample model ${relative(process.cwd(), file)}`);
  return file;
}

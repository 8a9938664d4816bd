// The sample models: of the demo and the examples, and of the page for any site.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { root } from "./paths.mjs";

const require = createRequire(import.meta.url);

const support = (name) => require(join(root, "build", "test", "support", name));

/** How the models of each architecture are made. */
const samples = {
  llama: () => support("sample-model.js").sampleModel(),
  bert: () => support("sample-bert.js").sampleBert(),
};

/** Writes a model in miniature, with random weights, and returns its path. Needs the tests built. */
export function writeSample(architecture = "llama") {
  const folder = join(root, "build", "demo");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, architecture === "llama" ? "sample.gguf" : `sample-${architecture}.gguf`);
  writeFileSync(file, samples[architecture]());
  console.error(`Wrote the sample model ${relative(process.cwd(), file)}`);
  return file;
}

/** How the sample of the page writes a conversation. */
const TEMPLATE = `{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
`;

/** The tensor of the page's sample that has a structure to look at. */
export const SHOWN = "blk.1.ffn_gate.weight";

/**
 * The llama with a vocabulary learnt from the documentation, a chat template, and a structure in one tensor, as those of
 * real models have. Needs the tests built.
 */
export function sampleForPage() {
  const { sampleModel, VOCABULARY } = support("sample-model.js");
  const { englishVocabulary } = support("english-vocabulary.js");
  const { str } = support("gguf-writer.js");
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  const text = pages.map((name) => readFileSync(join(root, "docs", name), "utf8")).join("\n");
  const template = ["tokenizer.chat_template", str(TEMPLATE)];
  const bytes = sampleModel([...englishVocabulary(text, VOCABULARY), template]);
  setStructure(bytes);
  return bytes;
}

function setStructure(bytes) {
  const { parse, quantizeSync } = require("gguf-native");
  const { Random } = support("random.js");
  const { offset, byteLength, shape } = parse(bytes).tensor(SHOWN);
  const [columns, rows] = shape;
  const random = new Random(3);
  const some = (count) => Float32Array.from({ length: count }, () => random.gaussian());
  const ofColumns = Array.from({ length: 4 }, () => some(columns));
  const ofRows = Array.from({ length: 4 }, () => some(rows));
  const strong = Float32Array.from({ length: columns }, () => (random.below(60) === 0 ? 3 : 1));
  const values = new Float32Array(columns * rows);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const common = ofRows.reduce((sum, row, i) => sum + row[r] * ofColumns[i][c], 0);
      const wave = Math.sin(c / 19 + r / 67) + Math.cos((c - r / 3) / 41);
      values[r * columns + c] = 0.02 * strong[c] * (0.5 * random.gaussian() + 0.4 * common + 0.7 * wave);
    }
  }
  bytes.set(quantizeSync("F16", values).subarray(0, byteLength), offset);
}

/** Writes two models to compare: the sample with more layers and in 16 bits, and what quantizing makes of it. */
export async function writeModelsToCompare(folder) {
  const { GgufWriter, parse, quantizeModel } = require("gguf-native");
  const { Random } = support("random.js");
  const random = new Random(5);
  const [layers, path, other] = [12, join(folder, "model-F16.gguf"), join(folder, "model-Q4_K_M.gguf")];
  const sample = parse(sampleForPage());
  const writer = GgufWriter.from(sample).set("llama.block_count", layers);
  for (const { name } of sample.tensors.values()) writer.removeTensor(name);
  for (let i = 0; i < layers; i++) {
    for (const tensor of sample.tensors.values()) {
      const [, layer, rest] = /^blk\.(\d+)\.(.*)$/.exec(tensor.name) ?? [];
      if (layer === undefined ? i > 0 : Number(layer) !== i % 2) continue;
      // The later the layer, the more weights are far from the others.
      const values = tensor.dequantizeSync().map((x) => x * (random.below(400 - 30 * i) === 0 ? 6 : 1));
      const type = tensor.shape.length === 1 ? "F32" : "F16";
      writer.addTensor(layer === undefined ? tensor.name : `blk.${i}.${rest}`, type, tensor.shape, values);
    }
  }
  await writer.write(path);
  await quantizeModel(path, other, { type: "Q4_K_M" });
  return [path, other];
}

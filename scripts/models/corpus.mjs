// The corpus: from seeds, a small file of every architecture, of every kind of checkpoint in 8 and 4 bits, and of every type. Each
// is opened, verified, converted, quantized, given an adapter, and run beside llama.cpp (npm --prefix bench install). What works
// is the table of docs/convert.md, which this writes. Exits with 1 if something is not as it should be, and says what.
// node scripts/models/corpus.mjs [FOLDER]    FOLDER gets the files
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildAll } from "../lib/build.mjs";
import { root } from "../lib/paths.mjs";

buildAll();
const require = createRequire(import.meta.url);
const modules =
  "adapters blocks checkpoints gguf-writer libllama model-facts quantized-checkpoints random recorded".split(" ");
const support = Object.assign({}, ...modules.map((name) => require(`../../build/test/support/${name}.js`)));
const { CHECKPOINTS, fileFacts, gaussianBlocks, hashOf, LlamaCpp, llamaQuantize, modelFacts, Random } = support;
const { matrix, SCHEMES, withLlamaVocabulary, writeAdapter, writeCheckpoint, writeGguf, writeQuantized } = support;
const { mixedLines } = require("../../build/test/models/mixed-lines.js");
const { Llama } = require("../../build/examples/llama/model.js");
const { MIXES } = require("../../dist/quantize-model/mixes.js");
const gguf = require("gguf-native");
const { convertModel, openSync } = gguf;
const { Embedder } = require("gguf-native/embeddings");
const { Tokenizer } = require("gguf-native/tokenizer");
const reference = require("gguf-native/reference");

const [given] = process.argv.slice(2);
const folder = given ?? mkdtempSync(join(tmpdir(), "gguf-native-corpus-"));
mkdirSync(folder, { recursive: true });
const at = (name) => join(folder, name);
const options = { overwrite: true };

/** Rows of the table: for each column, how often it was tried, and how often right. */
const rows = new Map();
function count(row, column, isRight, what) {
  const cells = rows.get(row) ?? { by: new Set() };
  rows.set(row, cells);
  cells[column] ??= [0, 0];
  cells[column][0] += isRight ? 1 : 0;
  cells[column][1]++;
  if (!isRight) console.error(`${what}: ${column}`);
}

const program = join(root, "dist", "cli", "main.js");
const verify = (...args) => spawnSync(process.execPath, [program, "verify", ...args]).status === 0;

/** Without lengths of 1 at the end of a shape, which llama.cpp does not keep. */
const tensorsOf = (path) => String(modelFacts(path).tensors.sort()).replaceAll(/(,1)+\]/g, "]");

/** How far numbers are from others, as a share of these. */
function distance(found, wanted) {
  const norm = (number) => Math.sqrt(wanted.reduce((sum, x, i) => sum + number(x, found[i]) ** 2, 0));
  return norm((x, y) => x - y) / norm((x) => x);
}
/** llama.cpp rounds more in its attention to binary16. */
const isNear = (found, wanted) => found.length === wanted.length && distance(found, wanted) < 0.005;

const TEXT = "the a b bathe the thes";
const QUERY = "a bath";
const vocabularies = new Set(["qwen2-merges", "phi-4", "code-llama", "nomic-mask"]);

/** The logits after each token in llama.cpp, or the vector of an embedder. */
async function llamaCpp(path, { ids, pooling, length }, adapters = []) {
  const llama = await LlamaCpp.load(path, 512, { adapters, pooling });
  if (pooling !== undefined) return llama.embed(ids, length);
  const logits = llama.read(ids);
  return Float32Array.from(ids.flatMap((_, i) => Array.from(logits.at(i))));
}

/** What a network here makes of a text, and what llama.cpp is to be given; where nothing here runs it, only that. */
async function ours(file, adapters = []) {
  const { metadata, tensors } = file;
  const tokenizer = new Tokenizer(metadata, { normalization: "model" });
  const encoded = (text, options) => [...tokenizer.encode(text, { special: true, ...options })];
  const ids = encoded(TEXT);
  const isEmbedder = /embedding|bert/.test(metadata.architecture);
  const hasPooling = metadata.arch("pooling_type") !== undefined;
  try {
    if (!isEmbedder) {
      const [llama, found] = [Llama.load(file, { activations: "f32", adapters }), []];
      llama.forwardEach(ids, llama.createCache(ids.length), 0, (_, logits) => found.push(...logits));
      return { ids, found, by: "llama example" };
    }
    const isRanked = !hasPooling && tensors.has("cls.weight");
    const pooling = hasPooling || isRanked ? undefined : "last";
    const embedder = await Embedder.open(file, { activations: "f32", pooling });
    const { dimensions: length } = embedder;
    const [found] = isRanked
      ? [await embedder.score(QUERY, [TEXT])]
      : await embedder.embed([TEXT], { normalize: false });
    embedder.close();
    if (!isRanked) return { ids, pooling: -1, length, found, by: "`Embedder`" };
    const pair = [...encoded(QUERY), metadata.get("tokenizer.ggml.eos_token_id"), ...encoded(TEXT, { bos: false })];
    return { ids: pair, pooling: 4, length: 1, found, by: "`Embedder`" };
  } catch (error) {
    if (!/runs models of the architectures|must be none or linear/.test(error.message)) throw error;
    return isEmbedder ? { ids, pooling: -1, length: metadata.arch("embedding_length") } : { ids };
  }
}

/** An adapter of some matrices of the first layer. */
async function adapterOf(place, name) {
  const tensors = {};
  const model = await gguf.openSafetensors(place);
  for (const { name, shape } of model.tensors.values()) {
    if (shape.length !== 2 || !/\.0\./.test(name) || /experts|position/.test(name)) continue;
    const stem = `base_model.model.${name.replace(/\.weight$/, "")}`;
    Object.assign(tensors, matrix(`${stem}.lora_A.weight`, 2, shape[0]), matrix(`${stem}.lora_B.weight`, shape[1], 2));
  }
  model.close();
  return writeAdapter(at(name), tensors, { lora_alpha: 0.25 });
}

const recorded = support.readRecorded("converted");
for (const checkpoint of CHECKPOINTS) {
  const { name } = checkpoint;
  const place = writeCheckpoint(folder, checkpoint);
  const f32 = at(`${name}.f32.gguf`);
  await convertModel(place, f32, { ...options, type: "f32" });
  const file = openSync(f32);
  const row = `\`${file.metadata.architecture}\``;
  for (const type of checkpoint.types) {
    const path = at(`${name}.${type}.gguf`);
    await convertModel(place, path, { ...options, type });
    const isEqual = hashOf(fileFacts(path)) === recorded[`${name} ${type}`];
    count(row, "converted", isEqual && verify(path) && verify(path, "--from", place), `${name} as ${type}`);
  }
  const tokenizer = new Tokenizer(file.metadata);
  await withLlamaVocabulary(f32, (vocabulary) => {
    const isEqual = (line) => String([...tokenizer.encode(line)]) === String(vocabulary.tokens(line));
    count(row, "tokens", mixedLines(100).every(isEqual), name);
  });
  if (vocabularies.has(name)) continue;
  const written = [];
  for (const [mix, { fileType }] of Object.entries(MIXES)) {
    const theirs = at("llama.cpp.gguf");
    const { isDone } = await llamaQuantize(f32, theirs, { fileType });
    // Of Q1_0 it refuses rows that are no whole blocks, and some mixes without an importance matrix.
    if (!isDone) continue;
    written.push(at(`${name}.${mix}.gguf`));
    await gguf.quantizeModel(f32, written.at(-1), { ...options, type: mix });
    count(row, "mixes", tensorsOf(written.at(-1)) === tensorsOf(theirs), `${name} as ${mix}`);
  }
  count(row, "verified", verify(...written), name);
  const asked = await ours(file);
  const { found, by = "llama.cpp" } = asked;
  const wanted = await llamaCpp(f32, asked);
  count(row, "runs", found === undefined ? wanted.every(Number.isFinite) : isNear(found, wanted), name);
  rows.get(row).by.add(by);
  // Adapters of GPT-2 are not converted.
  if (row === "`gpt2`") continue;
  const [adapter, merged] = [at(`${name}.lora.gguf`), at(`${name}.merged.gguf`)];
  await gguf.convertLora(await adapterOf(place, `${name}-lora`), adapter, { ...options, base: place });
  await gguf.mergeLora(f32, [adapter], merged, { ...options, scale: 0.5 });
  const adapted = await llamaCpp(f32, asked, [{ path: adapter, scale: 0.5 }]);
  const all = [await llamaCpp(merged, asked)];
  if (by === "llama example") all.push((await ours(file, [{ file: openSync(adapter), scale: 0.5 }])).found);
  // Beside what the adapter changes.
  count(
    row,
    "adapters",
    all.every((each) => distance(each, adapted) < distance(wanted, adapted) / 20),
    name,
  );
}

const base = at("mistral-v0.3");
for (const [name, scheme] of Object.entries(SCHEMES)) {
  const [quantized, plain] = await writeQuantized(base, folder, scheme);
  const [mine, exact, auto] = ["mine", "exact", name.replaceAll(" ", "-")].map((each) => at(`${each}.gguf`));
  await convertModel(quantized, mine, { ...options, name, type: "f32" });
  await convertModel(plain, exact, { ...options, name, type: "f32" });
  await convertModel(quantized, auto, options);
  const isRight = readFileSync(mine).equals(readFileSync(exact)) && verify(auto, "--from", quantized);
  count("matrices in 8 and 4 bits", "converted", isRight, name);
}

const random = new Random(9);
for (const [name, { id, blockSize }] of Object.entries(gguf.ggmlTypes)) {
  const path = at(`${name}.gguf`);
  const bytes = gaussianBlocks(name, 8, random);
  writeFileSync(path, writeGguf({ tensors: [{ name: "a", type: id, shape: [4 * blockSize, 2], bytes }] }));
  const found = openSync(path).tensor("a").dequantizeSync();
  const isEqual = String(found) === String(reference.dequantizeSync(name, bytes));
  count("types of tensors", "runs", isEqual && verify(path), name);
  rows.get("types of tensors").by.add("decoded as by `gguf-native/reference`");
}
if (given === undefined) rmSync(folder, { recursive: true });

const cell = (counts) => (counts === undefined ? "" : counts[0] === counts[1] ? counts[1] : counts.join(" of "));
const table = Array.from(rows, ([name, { converted, mixes, tokens, adapters, runs, by }]) => {
  const columns = [converted, mixes, tokens, adapters, runs].map(cell);
  return `| ${[name, ...columns, [...by].join(", ")].join(" | ")} |`;
}).join("\n");
const page = join(root, "docs", "convert.md");
const text = readFileSync(page, "utf8");
writeFileSync(page, text.replace(/(?<=\n\| of \|.*\n\|[-|]+\|\n)(\|.*\n)*/, `${table}\n`));
const isRight = [...rows.values()].every((cells) =>
  Object.values(cells).every((cell) => cell instanceof Set || cell[0] === cell[1]),
);
process.exit(isRight ? 0 : 1);

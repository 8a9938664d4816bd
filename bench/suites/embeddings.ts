/**
 * Vectors of texts: gguf-native/embeddings on all-MiniLM-L6-v2 in F16 and Q8_0, and onnxruntime-node on the same weights in
 * binary32 and 8 bits, one thread each: a text at a time, 32 of different lengths, and 32 of the same length.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { convertModel, openSync, quantizeModel } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { load } from "#dist/embeddings/load";
import { Network } from "#dist/embeddings/network";
import { MINILM, modelPath, needsModel } from "../../test/models/support";
import { projectRoot } from "../../test/support/paths";
import { type Context, compete, patience } from "../context";
import { optionalPackage } from "../optional";
import { benchFolder } from "../paths";
import type { Results } from "../results";

const BATCH = 32;
/** Of each text, where all have the same length: about the mean of the others. */
const TOKENS = 24;

export const EMBEDDINGS_SUBJECTS = ["a text", `${BATCH} texts`, `${BATCH} texts of ${TOKENS} tokens`];

/** Vectors of texts, from their tokens. */
type Embed = (texts: readonly Int32Array[]) => Float32Array[] | Promise<Float32Array[]>;

/** The part of onnxruntime-node that is used. */
interface OnnxRuntime {
  InferenceSession: { create(path: string, options: object): Promise<OnnxSession> };
  Tensor: new (type: "int64", data: BigInt64Array, shape: readonly number[]) => object;
}
interface OnnxSession {
  run(inputs: Record<string, object>): Promise<{ last_hidden_state: { data: Float32Array } }>;
}

export async function runEmbeddings(context: Context): Promise<void> {
  const { results } = context;
  const { skip } = needsModel(MINILM);
  if (skip) {
    results.miss(`vectors of texts: ${skip}`);
    return;
  }
  const sides = await sidesOf(results);
  const tokens = sentences(sides.tokenizer);
  const all = tokens.flatMap((some) => Array.from(some));
  const equal = tokens.map((_, i) => Int32Array.from(all.slice(i * 8, i * 8 + TOKENS)));
  const contenders = (texts: readonly Int32Array[]) =>
    [...sides.embed].map(([name, embed]) => ({ name, run: () => embed(texts) }));
  for (const [i, texts] of [tokens.slice(0, 1), tokens, equal].entries()) {
    const count = texts.reduce((sum, { length }) => sum + length, 0);
    const key = { task: "embeddings", subject: EMBEDDINGS_SUBJECTS[i]!, count, threads: 1 };
    await compete(context, key, contenders(texts), patience(context, 20, 5));
  }
  const title = "Vectors of texts by all-MiniLM-L6-v2, one thread";
  results.compare(title, { task: "embeddings" }, "ms", [...sides.embed.keys()]);
}

async function sidesOf(results: Results): Promise<{ tokenizer: Tokenizer; embed: Map<string, Embed> }> {
  const folder = join(projectRoot, "build", "bench", "models");
  mkdirSync(folder, { recursive: true });
  const [f16, q8] = ["minilm-f16.gguf", "minilm-q8_0.gguf"].map((name) => join(folder, name)) as [string, string];
  await convertModel(modelPath(MINILM), f16, { type: "f16" });
  await quantizeModel(f16, q8, { type: "Q8_0" });
  const embed = new Map<string, Embed>();
  for (const [side, path, prepare] of [
    ["Q8_0", q8, false],
    ["Q8_0, prepared", q8, true],
    ["F16", f16, false],
  ] as const) {
    const { file } = await load(path, { activations: "int8", threads: 1, prepare });
    const network = new Network(file, { activations: "int8", threads: 1, pooling: undefined, prepare });
    embed.set(side, (texts) => embedAll(network, texts));
  }
  const onnx = await optionalPackage<OnnxRuntime>("onnxruntime-node", join(benchFolder, "onnxruntime"));
  if (onnx === undefined) results.miss("onnxruntime-node: not installed (npm --prefix bench/onnxruntime install)");
  for (const [side, name] of [
    ["onnxruntime, f32", "all-minilm-l6-v2.onnx"],
    ["onnxruntime, q8", "all-minilm-l6-v2-q8.onnx"],
  ] as const) {
    const path = modelPath(name);
    if (!existsSync(path)) results.miss(`${side}: no ${path} (bench/onnxruntime/minilm_onnx.py)`);
    else if (onnx !== undefined) embed.set(side, await onnxSide(onnx, path));
  }
  return { tokenizer: new Tokenizer(openSync(f16).metadata), embed };
}

/** As an embedder does it, on this thread. */
function embedAll(network: Network, all: readonly Int32Array[]): Float32Array[] {
  const texts = all.map((ids) => ({ ids, second: ids.length }));
  const steps = network.run(texts, false);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** As transformers.js has it: texts are padded to the longest, and the mean is JavaScript. */
async function onnxSide({ InferenceSession, Tensor }: OnnxRuntime, path: string): Promise<Embed> {
  const session = await InferenceSession.create(path, { intraOpNumThreads: 1, interOpNumThreads: 1 });
  return async (texts) => {
    const longest = Math.max(...texts.map(({ length }) => length));
    const shape = [texts.length, longest];
    const ids = new BigInt64Array(texts.length * longest);
    const mask = new BigInt64Array(ids.length);
    for (const [i, tokens] of texts.entries()) {
      ids.set(BigInt64Array.from(tokens, BigInt), i * longest);
      mask.fill(1n, i * longest, i * longest + tokens.length);
    }
    const { last_hidden_state: hidden } = await session.run({
      input_ids: new Tensor("int64", ids, shape),
      attention_mask: new Tensor("int64", mask, shape),
      token_type_ids: new Tensor("int64", new BigInt64Array(ids.length), shape),
    });
    const width = hidden.data.length / ids.length;
    return texts.map(({ length }, i) => {
      const mean = new Float32Array(width);
      for (let token = i * longest; token < i * longest + length; token++) {
        for (let j = 0; j < width; j++) mean[j]! += hidden.data[token * width + j]! / length;
      }
      return mean;
    });
  };
}

/** The tokens of sentences of different lengths, the first of which is neither long nor short. */
function sentences(tokenizer: Tokenizer): Int32Array[] {
  const text = readFileSync(join(projectRoot, "docs", "safety.md"), "utf8");
  const all = text.split(/(?<=[.:])\s+/).filter(({ length }) => length > 20 && length < 300);
  return all.slice(0, BATCH).map((sentence) => tokenizer.encode(sentence));
}

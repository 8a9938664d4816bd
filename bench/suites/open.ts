/** Opening files, compared with other readers: headers with large vocabularies, headers with many tensors. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gguf } from "@huggingface/gguf";
import { type GgufFile, openSync } from "gguf-native";
import { arr, str, u32, writeGguf } from "../../test/support/gguf-writer";
import { Random } from "../../test/support/random";
import { type Context, compete, patience } from "../context";
import type { Contender } from "../measure";
import { optionalPackage } from "../optional";
import { benchFolder, realVocabulary, temporaryFile } from "../paths";

const VOCABULARY = 100_000;
const GENERATED = "100,000 tokens";
const REAL = "deepseek-llm";
const READERS = ["@huggingface/gguf", "node-llama-cpp"];
/** What is done with an open file; "everything" is what the other readers do whenever they open one. */
const WORKS: Record<string, (file: GgufFile) => void> = {
  native: () => undefined,
  "native, tokens": ({ metadata }) => void metadata.strings("tokenizer.ggml.tokens"),
  "native, everything": ({ metadata, tensors }) => {
    for (const key of metadata.keys()) metadata.get(key);
    for (const tensor of tensors.values()) void tensor.shape;
  },
};

interface NodeLlamaCpp {
  readGgufFileInfo(path: string, options: { logWarnings: boolean }): Promise<unknown>;
}

export async function runOpen(context: Context): Promise<void> {
  const { options, results } = context;
  await measureOpen(context);
  for (const work of Object.keys(WORKS)) {
    results.compare(`Opening a header: ${work}`, { task: "open" }, "ms", [work, ...READERS]);
  }
  const task = "open tensors";
  for (const count of options.quick ? [1_000, 10_000, 50_000] : [1_000, 10_000, 50_000, 200_000]) {
    const path = temporaryFile("tensors.gguf");
    writeFileSync(path, tensorFile(count));
    const contenders: Contender[] = [
      { name: "native", run: () => withFile(path, () => undefined) },
      { name: "native, listed", run: () => withFile(path, ({ tensors }) => void tensors.size) },
    ];
    if (count <= 10_000) {
      contenders.push({ name: READERS[0]!, run: () => gguf(path, { allowLocalFile: true }), maxRounds: 4 });
    }
    await compete(context, { task, subject: `${count}` }, contenders, patience(context, 2, 0.5));
  }
  results.compare("Opening a header with many tensors", { task }, "ms", ["native", "native, listed", READERS[0]!]);
}

/** The headers with large vocabularies. */
export async function measureOpen(context: Context): Promise<void> {
  const { results, options } = context;
  const other = await optionalPackage<NodeLlamaCpp>("node-llama-cpp", join(benchFolder, "node-llama-cpp"));
  if (other === undefined) {
    results.miss("node-llama-cpp's reader: not installed (npm --prefix bench/node-llama-cpp install)");
  }
  const generated = temporaryFile("vocabulary.gguf");
  writeFileSync(generated, vocabularyFile());
  const real = realVocabulary();
  if (real === undefined) results.miss(`${REAL}: its vocabulary was not found (set GGUF_NATIVE_SHARED_DATA)`);
  const slow = { maxRounds: options.quick ? 4 : 12 };
  for (const [subject, path] of [[GENERATED, generated], ...(real ? [[REAL, real]] : [])] as [string, string][]) {
    const contenders: Contender[] = [
      ...Object.entries(WORKS).map(([name, use]) => ({ name, run: () => withFile(path, use) })),
      { name: READERS[0]!, run: () => gguf(path, { allowLocalFile: true }), ...slow },
    ];
    const run = () => other?.readGgufFileInfo(path, { logWarnings: false });
    if (other !== undefined) contenders.push({ name: READERS[1]!, run, ...slow });
    await compete(context, { task: "open", subject }, contenders, patience(context, 8, 2));
  }
}

function withFile(path: string, use: (file: GgufFile) => void): void {
  using file = openSync(path);
  use(file);
}

/** A byte-pair vocabulary: 100,000 tokens with their types, 100,000 merges. */
function vocabularyFile(): Uint8Array {
  const random = new Random(4);
  const tokens = Array.from({ length: VOCABULARY }, () => word(random));
  const merges = tokens.map(() => `${word(random)} ${word(random)}`);
  const types = tokens.map(() => 1);
  return writeGguf({
    metadata: [
      ["general.architecture", str("llama")],
      ["llama.context_length", u32(4096)],
      ["tokenizer.ggml.model", str("gpt2")],
      ["tokenizer.ggml.tokens", arr("string", tokens)],
      ["tokenizer.ggml.token_type", arr("int32", types)],
      ["tokenizer.ggml.merges", arr("string", merges)],
    ],
  });
}

/** One to twelve letters. About half of the words start with the character that stands for a space. */
function word(random: Random): string {
  let text = random.bits() & 1 ? "\u0120" : "";
  const length = 1 + random.below(6) + random.below(7);
  for (let i = 0; i < length; i++) text += String.fromCharCode(97 + random.below(26));
  return text;
}

function tensorFile(count: number): Uint8Array {
  const bytes = new Uint8Array(32);
  const name = (i: number) => `blk.${i >> 5}.ffn_gate_exps.${i & 31}.weight`;
  return writeGguf({
    metadata: [["general.architecture", str("llama")]],
    tensors: Array.from({ length: count }, (_, i) => ({ name: name(i), type: 0, shape: [4, 2], bytes })),
  });
}

/** Opening files, compared with other readers: headers with large vocabularies, headers with many tensors. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gguf } from "@huggingface/gguf";
import { type GgufFile, openSync } from "gguf-native";
import { arr, str, u32, writeGguf } from "../../test/support/gguf-writer";
import { Random } from "../../test/support/random";
import { type Context, compete } from "../context";
import type { Contender } from "../measure";
import { optionalPackage } from "../optional";
import { benchFolder, realVocabulary, temporaryFile } from "../paths";
import { duration, printTable, times } from "../table";

const VOCABULARY = 100_000;
export const GENERATED = "100,000 tokens";
export const REAL = "deepseek-llm";

interface NodeLlamaCpp {
  readGgufFileInfo(path: string, options: { logWarnings: boolean }): Promise<unknown>;
}

export async function runOpen(context: Context): Promise<void> {
  const { options, results } = context;
  const other = await optionalPackage<NodeLlamaCpp>("node-llama-cpp", join(benchFolder, "node-llama-cpp"));
  if (other === undefined) {
    results.miss("node-llama-cpp's reader: not installed (npm --prefix bench/node-llama-cpp install)");
  }
  const generated = temporaryFile("vocabulary.gguf");
  writeFileSync(generated, vocabularyFile());
  await runVocabulary(context, GENERATED, generated, other);
  const real = realVocabulary();
  if (real === undefined) results.miss(`${REAL}: its vocabulary was not found (set GGUF_NATIVE_SHARED_DATA)`);
  else await runVocabulary(context, REAL, real, other);

  for (const count of options.quick ? [1_000, 10_000, 50_000] : [1_000, 10_000, 50_000, 200_000]) {
    await runTensors(context, count);
  }
  printOpen(context);
}

async function runVocabulary(
  { options, results }: Context,
  subject: string,
  path: string,
  other: NodeLlamaCpp | undefined,
): Promise<void> {
  const slow = { maxRounds: options.quick ? 4 : 12 };
  const contenders: Contender[] = [
    { name: "native", run: () => withFile(path, () => undefined) },
    { name: "native, tokens", run: () => withFile(path, decodeTokens) },
    { name: "native, everything", run: () => withFile(path, decodeEverything) },
    { name: "@huggingface/gguf", run: () => gguf(path, { allowLocalFile: true }), ...slow },
  ];
  if (other !== undefined) {
    const run = () => other.readGgufFileInfo(path, { logWarnings: false });
    contenders.push({ name: "node-llama-cpp", run, ...slow });
  }
  const patience = { budget: options.quick ? 2 : 8, minRounds: 4 };
  await compete(results, (side) => ({ task: "open", subject, side }), contenders, patience);
}

function withFile(path: string, use: (file: GgufFile) => void): void {
  const file = openSync(path);
  use(file);
  file.close();
}

function decodeTokens({ metadata }: GgufFile): void {
  metadata.strings("tokenizer.ggml.tokens");
}

/** Does what the other readers do whenever they open a file. */
function decodeEverything({ metadata, tensors }: GgufFile): void {
  for (const key of metadata.keys()) metadata.get(key);
  for (const tensor of tensors.values()) void tensor.shape;
}

async function runTensors({ options, results }: Context, count: number): Promise<void> {
  const path = temporaryFile(`tensors-${count}.gguf`);
  writeFileSync(path, tensorFile(count));
  const contenders: Contender[] = [
    { name: "native", run: () => withFile(path, () => undefined) },
    { name: "native, listed", run: () => withFile(path, ({ tensors }) => void tensors.size) },
  ];
  if (count <= 10_000) {
    contenders.push({
      name: "@huggingface/gguf",
      run: () => gguf(path, { allowLocalFile: true }),
      maxRounds: 4,
    });
  }
  const patience = { budget: options.quick ? 0.5 : 2, minRounds: 4 };
  await compete(
    results,
    (side) => ({ task: "open tensors", subject: "tensors", side, count }),
    contenders,
    patience,
  );
}

/** A byte-pair vocabulary: 100,000 tokens with their types, 100,000 merges. */
function vocabularyFile(): Uint8Array {
  const random = new Random(4);
  const tokens = Array.from({ length: VOCABULARY }, () => word(random));
  const merges = tokens.map(() => `${word(random)} ${word(random)}`);
  return writeGguf({
    metadata: [
      ["general.architecture", str("llama")],
      ["general.name", str("A vocabulary")],
      ["llama.context_length", u32(4096)],
      ["tokenizer.ggml.model", str("gpt2")],
      ["tokenizer.ggml.tokens", arr("string", tokens)],
      [
        "tokenizer.ggml.token_type",
        arr(
          "int32",
          tokens.map(() => 1),
        ),
      ],
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
  return writeGguf({
    metadata: [["general.architecture", str("llama")]],
    tensors: Array.from({ length: count }, (_, i) => ({
      name: `blk.${i >> 5}.ffn_gate_exps.${i & 31}.weight`,
      type: 0,
      shape: [4, 2],
      bytes,
    })),
  });
}

function printOpen({ results }: Context): void {
  for (const subject of [GENERATED, REAL]) {
    const rows = results.all({ task: "open", subject });
    const time = (side: string) => rows.find((row) => row.side === side)?.best;
    printTable(
      `Opening a header: ${subject}`,
      ["", "time", "@huggingface/gguf takes", "node-llama-cpp takes"],
      rows.map(({ side, best }) => [
        side,
        duration(best),
        side.startsWith("native") ? times(time("@huggingface/gguf"), best) : undefined,
        side.startsWith("native") ? times(time("node-llama-cpp"), best) : undefined,
      ]),
    );
  }
  printTable(
    "Opening a header with many tensors",
    ["tensors", "open", "per tensor", "open and list", "per tensor", "@huggingface/gguf"],
    results.all({ task: "open tensors", side: "native" }).map(({ count = 1, best }) => {
      const other = (side: string) => results.best({ task: "open tensors", subject: "tensors", side, count });
      const listed = other("native, listed")!;
      return [
        count.toLocaleString("en-US"),
        duration(best),
        duration(best / count),
        duration(listed),
        duration(listed / count),
        duration(other("@huggingface/gguf")),
      ];
    }),
  );
}

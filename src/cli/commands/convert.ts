/** `gguf-native convert`: a model in another form. */
import { didYouMean } from "../../base/suggest";
import { PLAIN_TYPES } from "../../convert/convert-model";
import { convertModel } from "../../index";
import { mixNames } from "../../quantize-model/mixes";
import { wordRuleNames } from "../../tokenizer/word-rules";
import { checkMix } from "../arguments/mix";
import { modelOptions, shownPath } from "../arguments/open-model";
import { expectPositionals, oneOf, parse, UsageError, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import { printQuantizeReport } from "../output/quantize-report";
import type { Terminal } from "../output/terminal";
import { interruptible } from "../output/write-files";
import { REWRITE_HELP, REWRITE_OPTIONS, rewrite } from "../work/rewrite";

const HELP = `Usage: gguf-native convert FOLDER|URL OUT [--type TYPE] [options]
       gguf-native convert FILE|URL OUT --byte-order big|little [options]

Writes the GGUF file of a checkpoint: a folder with .safetensors, config.json
and the files of its tokenizer; or hf://OWNER/NAME. Names, order, types, bytes
and metadata are those of llama.cpp's converter. Or writes a GGUF file in
another byte order: all numbers of the header and of the tensors; values stay
what they are to the bit. OUT is one file, and appears once it is complete.

  --type TYPE         auto (default: the 16-bit type of the checkpoint, else
                      f16), f32, f16, bf16, q8_0, or a mix such as Q4_K_M
  --name NAME         the model's name, in place of that of its folder
  --word-rule NAME    tokenizer.ggml.pre, where it is not found
  --threads N         how many threads encode at most
  --byte-order ORDER  little, as almost all models are, or big
${REWRITE_HELP}
Examples:
  gguf-native convert SmolLM2-135M model.gguf
  gguf-native convert hf://Qwen/Qwen3-0.6B model.gguf --type Q4_K_M
  gguf-native convert model.gguf model-be.gguf --byte-order big
`;

const ORDERS = ["little", "big"] as const;

const OPTIONS = {
  type: { type: "string", choices: [...PLAIN_TYPES, ...mixNames] },
  name: { type: "string" },
  "word-rule": { type: "string", choices: wordRuleNames },
  threads: { type: "string" },
  "byte-order": { type: "string", choices: ORDERS },
  ...REWRITE_OPTIONS,
} as const;

type Values = ReturnType<typeof parse<typeof OPTIONS>>["values"];

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, output] = expectPositionals(positionals, "FILE|FOLDER|URL", "OUT");
  const byteOrder = oneOf("--byte-order", values["byte-order"], ORDERS);
  const { type, name, "word-rule": wordRule } = values;
  if (byteOrder === undefined) return convert(path, output, values, terminal);
  if ((type ?? name ?? wordRule ?? values.threads) !== undefined) {
    throw new UsageError("--byte-order is for GGUF files; the other options are for checkpoints");
  }
  return rewrite(path, output, values, terminal, () => ({ byteOrder }));
}

export const command: Command = { help: HELP, options: OPTIONS, run };

async function convert(path: string, output: string, values: Values, terminal: Terminal): Promise<number> {
  const { type = "auto", name } = values;
  if (/\.gguf$/i.test(path)) throw new UsageError("missing --byte-order, which is what a GGUF file can get");
  if (!PLAIN_TYPES.includes(type.toLowerCase())) checkMix(type);
  const wordRule = values["word-rule"];
  if (wordRule !== undefined && !wordRuleNames.includes(wordRule)) {
    const detail = `--word-rule: no rule for words is called '${wordRule}'`;
    throw new UsageError(`${detail}${didYouMean(wordRule, wordRuleNames)} docs/convert.md lists them`);
  }
  const { headers } = modelOptions(values, [path]);
  const threads = wholeNumber("--threads", values.threads, 1, 1024);
  const dryRun = values["dry-run"] ?? false;
  const report = await interruptible(terminal, shownPath(path), values.force, (writing) =>
    convertModel(path, output, { ...writing, type, name, wordRule, threads, dryRun, headers }),
  );
  printQuantizeReport(report, path, output, values, terminal);
  return 0;
}

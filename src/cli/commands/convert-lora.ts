/** `gguf-native convert-lora`: an adapter of PEFT as a GGUF file. */
import { type ConvertLoraOptions, LORA_TYPES } from "../../convert/convert-lora";
import { convertLora } from "../../index";
import { modelOptions, shownPath } from "../arguments/open-model";
import { expectPositionals, oneOf, parse, UsageError, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import { printQuantizeReport } from "../output/quantize-report";
import type { Terminal } from "../output/terminal";
import { interruptible } from "../output/write-files";
import { REWRITE_HELP, REWRITE_OPTIONS } from "../work/rewrite";

const HELP = `Usage: gguf-native convert-lora FOLDER|URL OUT --base FOLDER|URL [options]

Writes the GGUF file of a LoRA adapter that PEFT has saved: a folder with
adapter_config.json and adapter_model.safetensors. Names, order, bytes and
metadata are those of llama.cpp's converter. llama.cpp loads it with --lora;
'merge-lora' adds it to a model.

  --base FOLDER       the model that the adapter is for, or its URL, such as
                      hf://OWNER/NAME. Only its config.json is read
  --type TYPE         f32 (default), f16, bf16 or q8_0
  --threads N         how many threads encode at most
${REWRITE_HELP}
Examples:
  gguf-native convert-lora my-adapter adapter.gguf --base SmolLM2-135M
  gguf-native convert-lora my-adapter adapter.gguf --base hf://Qwen/Qwen3-0.6B
`;

const OPTIONS = {
  base: { type: "string" },
  type: { type: "string", choices: LORA_TYPES },
  threads: { type: "string" },
  ...REWRITE_OPTIONS,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, output] = expectPositionals(positionals, "FOLDER|URL", "OUT");
  const { base } = values;
  if (base === undefined) throw new UsageError("missing --base: the model that the adapter is for");
  const type = oneOf("--type", values.type, LORA_TYPES) as ConvertLoraOptions["type"];
  const { headers } = modelOptions(values, [path, base]);
  const threads = wholeNumber("--threads", values.threads, 1, 1024);
  const dryRun = values["dry-run"] ?? false;
  const report = await interruptible(terminal, shownPath(path), values.force, (writing) =>
    convertLora(path, output, { ...writing, base, type, threads, dryRun, headers }),
  );
  printQuantizeReport(report, path, output, values, terminal);
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** `gguf-native merge-lora`: a model with adapters added to its weights. */
import { mergeLora } from "../../index";
import { mixNames } from "../../quantize-model/mixes";
import { checkMix } from "../arguments/mix";
import { shownPath } from "../arguments/open-model";
import { expectPositionals, parse, UsageError, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import { printQuantizeReport } from "../output/quantize-report";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, interruptible } from "../output/write-files";

const HELP = `Usage: gguf-native merge-lora MODEL|URL ADAPTER|URL... OUT [options]

Writes a model with LoRA adapters added to its weights: W + scale * alpha / rank
* B A. Adapters are GGUF files, of 'convert-lora' or of llama.cpp's converter.
Memory does not grow with the model. Without --type every tensor keeps its type,
and those that change are rounded to it again: best from F16, BF16 or F32.

  --scale S           how much of the adapters is added, 1 by default; once for
                      all, or once for each of them in their order
  --type TYPE         quantizes as 'quantize' does: F16, Q8_0, Q4_K_M and so on
  --imatrix FILE      an importance matrix, as for 'quantize'
  --threads N         how many threads encode at most
  --allow-requantize  with --type: rounds again what is quantized already
${FORCE_HELP}  --dry-run           shows types and sizes, and writes nothing
  --json              the same as JSON, with all figures

Examples:
  gguf-native merge-lora model-f16.gguf adapter.gguf merged-f16.gguf
  gguf-native merge-lora m.gguf a.gguf b.gguf out.gguf --scale 0.5 --scale 1
  gguf-native merge-lora m.gguf adapter.gguf out.gguf --type Q4_K_M
`;

const OPTIONS = {
  scale: { type: "string", multiple: true },
  type: { type: "string", choices: mixNames },
  imatrix: { type: "string" },
  threads: { type: "string" },
  "allow-requantize": { type: "boolean" },
  "dry-run": { type: "boolean" },
  json: { type: "boolean" },
  ...FORCE_OPTION,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const names = ["MODEL|URL", ...positionals.slice(2).map(() => "ADAPTER|URL"), "OUT"];
  expectPositionals(positionals, ...(positionals.length < 3 ? ["MODEL|URL", "ADAPTER|URL", "OUT"] : names));
  const [path = "", ...adapters] = positionals;
  const output = adapters.pop() as string;
  const { type, imatrix: importance } = values;
  if (type !== undefined) checkMix(type);
  const scale = values.scale?.map((text) => {
    const number = Number(text);
    if (text.trim() === "" || !Number.isFinite(number)) throw new UsageError(`--scale must be a number, not '${text}'`);
    return number;
  });
  if (scale !== undefined && scale.length !== 1 && scale.length !== adapters.length) {
    throw new UsageError(`--scale goes once for all adapters or once for each of ${adapters.length}`);
  }
  const threads = wholeNumber("--threads", values.threads, 1, 1024);
  const dryRun = values["dry-run"] ?? false;
  const report = await interruptible(terminal, shownPath(path), values.force, (writing) =>
    mergeLora(path, adapters, output, {
      ...writing,
      ...{ type, importance, threads, dryRun, scale: scale?.length === 1 ? scale[0] : scale },
      allowRequantize: values["allow-requantize"],
    }),
  );
  printQuantizeReport(report, path, output, values, terminal);
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** `gguf-native quantize`: a model with the weights of another in fewer bits. */
import { meantType } from "../../base/types";
import { type GgmlType, isGgmlType, quantizeModel } from "../../index";
import { SEARCHES } from "../../quantize/request";
import { mixNames } from "../../quantize-model/mixes";
import { checkMix } from "../arguments/mix";
import {
  isElsewhere,
  MODEL_OPTIONS,
  modelOptions,
  type OpenedModel,
  openModel,
  shownPath,
} from "../arguments/open-model";
import { byteCount, expectPositionals, oneOf, parse, UsageError, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import { printQuantizeReport } from "../output/quantize-report";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, interruptible } from "../output/write-files";

const HELP = `Usage: gguf-native quantize FILE|URL OUT [--type] TYPE [options]
       gguf-native quantize FILE|URL OUT --target-size SIZE [options]
       gguf-native quantize FILE|URL OUT --target-bits BITS [options]

Writes a model with the weights of another one, quantized to a mix of types as
llama.cpp has them: each matrix gets the type that it would get there. What is
no matrix of weights is copied. Then it lists how far the weights are from those
before, worst first. FILE is any model: split, big-endian or with weights of any
type. OUT is one file, and appears once it is complete.

  --type TYPE         the mix: Q8_0, Q6_K, Q5_K_M, Q4_K_M (4.9 bits for each
                      weight, mostly a good choice), Q3_K_M, IQ2_XS and so on
  --target-size SIZE  in place of a mix: chooses the type of each matrix so that
                      OUT has at most so many bytes (500M, 4GB, 4GiB), with as
                      little error as it finds; shows what mixes would have
  --target-bits BITS  the same for at most so many bits for each weight: 4.5
  --tensor NAME=TYPE  the type of a tensor, or of all that a glob matches, in
                      place of the mix's; more than once for more
  --imatrix FILE      an importance matrix of llama-imatrix: .gguf or .dat, or a
                      URL. Mixes of less than three bits need one
  --search SEARCH     ggml (default) or best: blocks of Q4_0, Q2_K to Q6_K,
                      IQ4_NL and IQ4_XS with less error than llama.cpp's, in up
                      to twenty times the time
  --threads N         how many threads encode at most
  --allow-requantize  rounds again what is quantized already, which loses more
                      than rounding the original
${FORCE_HELP}  --dry-run           shows types and sizes, and writes nothing
  --json              the same as JSON, with all figures
  -H, --header TEXT   sent with requests for a URL; more than once for more

Examples:
  gguf-native quantize model-f16.gguf model.gguf --type Q4_K_M
  gguf-native quantize model-f16.gguf model.gguf --type Q4_K_M --dry-run
  gguf-native quantize model-f16.gguf model.gguf --target-size 4GB
  gguf-native quantize m.gguf out.gguf --type Q5_K_S --tensor '*.attn_v.*=Q8_0'
  gguf-native quantize m.gguf out.gguf --type IQ2_XS --imatrix imatrix.gguf
`;

const OPTIONS = {
  type: { type: "string", choices: mixNames },
  "target-size": { type: "string" },
  "target-bits": { type: "string" },
  tensor: { type: "string", multiple: true },
  imatrix: { type: "string" },
  search: { type: "string", choices: SEARCHES },
  threads: { type: "string" },
  "allow-requantize": { type: "boolean" },
  "dry-run": { type: "boolean" },
  json: { type: "boolean" },
  ...FORCE_OPTION,
  header: MODEL_OPTIONS.header,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, output, named] = expectPositionals(positionals, "FILE|URL", "OUT", "[TYPE]");
  const { imatrix, type = named } = values;
  const targetBytes = byteCount("--target-size", values["target-size"]);
  const targetBits = bitCount(values["target-bits"]);
  const given = [type, targetBytes, targetBits].filter((each) => each !== undefined);
  if (given.length === 0)
    throw new UsageError(`missing --type: one of ${mixNames.join(", ")}; or --target-size, --target-bits`);
  if (given.length > 1) throw new UsageError("give one of --type, --target-size and --target-bits");
  if (named !== undefined && named !== type) throw new UsageError("give the type once: as --type or after OUT");
  if (type !== undefined) checkMix(type);
  const threads = wholeNumber("--threads", values.threads, 1, 1024);
  const search = oneOf("--search", values.search, SEARCHES);
  const tensors = tensorTypes(values.tensor);
  const dryRun = values["dry-run"] ?? false;
  const urls = [path, imatrix].filter((each) => each !== undefined && isElsewhere(each)) as string[];
  const options = modelOptions(values, urls);
  const remote = new Map<string, OpenedModel>();
  try {
    for (const url of urls) remote.set(url, await openModel(url, options));
    const importance = imatrix === undefined ? undefined : (remote.get(imatrix)?.file ?? imatrix);
    const report = await interruptible(terminal, shownPath(path), values.force, (writing) =>
      quantizeModel(remote.get(path)?.file ?? path, output, {
        ...writing,
        ...{ type, targetBytes, targetBits, tensors, importance, search, threads, dryRun },
        allowRequantize: values["allow-requantize"],
      }),
    );
    printQuantizeReport(report, path, output, values, terminal);
  } finally {
    for (const { file } of remote.values()) file.close();
  }
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

function bitCount(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const bits = Number(value);
  if (/^\d+(\.\d+)?$/.test(value) && bits > 0) return bits;
  throw new UsageError(`--target-bits must be a number of bits such as 4.5, not '${value}'`);
}

/** What `--tensor` says. */
function tensorTypes(values: readonly string[] | undefined): Record<string, GgmlType> | undefined {
  if (values === undefined) return undefined;
  const types = values.map((value) => {
    const [, name, type] = /^(.+)=([^=]+)$/s.exec(value) ?? [];
    if (name === undefined || type === undefined) throw new UsageError(`--tensor must be NAME=TYPE, not '${value}'`);
    const upper = type.toUpperCase();
    if (!isGgmlType(upper)) throw new UsageError(`--tensor: no tensor type is ${type}${meantType(upper)}`);
    return [name, upper] as const;
  });
  return Object.fromEntries(types);
}

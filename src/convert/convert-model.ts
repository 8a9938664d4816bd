/** Checkpoints of safetensors as GGUF files: {@link convertModel}. */

import { checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import { didYouMean } from "../base/suggest";
import { type GgmlType, ggmlTypes } from "../base/types";
import type { RemoteGgufFile, RemoteOptions } from "../file/remote-file";
import { checkUnchanged } from "../file/unchanged";
import { type Mix, mixOf } from "../quantize-model/mixes";
import { checkPlanned, type PlannedTensor, planModel } from "../quantize-model/plan";
import {
  checkTarget,
  type QuantizeModelOptions,
  type QuantizeReport,
  TARGET_OPTIONS,
  writePlanned,
} from "../quantize-model/quantize-model";
import type { SafetensorsFile } from "../safetensors/model";
import { wordRuleNames } from "../tokenizer/word-rules";
import { checkText as checkWritable } from "../writer/values";
import type { WriteOptions } from "../writer/write-options";
import { GgufWriter } from "../writer/writer";
import { isAlwaysF32, openCheckpoint, placeOf } from "./converted-model";

/** Options of {@link convertModel}. */
export interface ConvertModelOptions
  extends WriteOptions,
    Pick<QuantizeModelOptions, "tensors" | "search" | "threads" | "dryRun"> {
  /**
   * `"auto"`, the default, is the type of the first matrix by name that has one of 16 bits, and F16 where none has. `"f32"`,
   * `"f16"`, `"bf16"` and `"q8_0"` are for all matrices; or a mix of llama.cpp, such as `"Q4_K_M"`, and
   * only then `tensors` may be given, by names in the new file.
   */
  type?: string | undefined;
  /** `general.name`; default: what the configuration or the folder is called. */
  name?: string | undefined;
  /** `tokenizer.ggml.pre`, where the rule for words of a `tokenizer.json` is not known. */
  wordRule?: string | undefined;
  /** Sent with every request for a URL, as those of `openRemote`. */
  headers?: RemoteOptions["headers"];
}

const OPTIONS: OptionNames<ConvertModelOptions> = {
  ...TARGET_OPTIONS,
  ...{ type: true, name: true, wordRule: true, headers: true },
};

/** Types that all matrices get, whatever they do. */
const PLAIN: Readonly<Record<string, GgmlType>> = { f32: "F32", f16: "F16", bf16: "BF16", q8_0: "Q8_0" };

/** What `type` may be besides mixes. */
export const PLAIN_TYPES: readonly string[] = ["auto", ...Object.keys(PLAIN)];

/**
 * Writes the GGUF file of a checkpoint: a folder with safetensors, `config.json` and the files of its tokenizer. Names, order,
 * types, bytes and metadata are those of llama.cpp's converter. `docs/convert.md` lists the architectures.
 *
 * Tensors go through memory a piece at a time. The new file appears once it is complete.
 *
 * @param input a folder, a file of safetensors beside the others, or a URL of one of these, such as `hf://OWNER/NAME`. The files
 *   beside a URL are where its path ends in another name; they are asked for with the same query
 * @param output what is there is replaced, unless it is write-protected or a file of the checkpoint
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for another architecture, a tensor that it does not have, or a type or a
 *   rule for words that is not known; otherwise as `openSafetensors` and `quantizeModel`
 * @throws the reason of `options.signal` if it is aborted; then, as in all other cases, there is no new file
 */
export async function convertModel(
  input: string | URL,
  output: string | URL,
  options?: ConvertModelOptions,
): Promise<QuantizeReport> {
  const given = checkOptions(options, OPTIONS);
  const type = checkText("options.type", given.type) ?? "auto";
  const isPlain = PLAIN_TYPES.includes(type.toLowerCase());
  if (!isPlain) mixOf(type);
  else if (given.tensors !== undefined) {
    throw invalidArgValue("options.tensors", "must be left out where options.type is no mix", given.tensors);
  }
  const name = checkText("options.name", given.name);
  if (name !== undefined) checkWritable("options.name", name);
  const wordRule = checkWordRule(given.wordRule);
  const to = checkTarget(output, given, OPTIONS);
  const choose = (model: SafetensorsFile): { type: GgmlType | undefined; name: string; mix: Mix } => {
    const plain = isPlain ? (PLAIN[type.toLowerCase()] ?? storedType(model)) : undefined;
    return { type: plain, ...mixOf(plain ?? type) };
  };
  const fileType = (model: SafetensorsFile): number => choose(model).mix.fileType;
  const { model, converted, paths } = await openCheckpoint(
    await placeOf(input, new Headers(given.headers)),
    { name, wordRule, fileType },
    to.options.signal,
  );
  try {
    const chosen = choose(model);
    const plan =
      chosen.type === undefined
        ? planModel(converted, chosen.mix, given.tensors, undefined)
        : planPlain(converted, chosen.type, type.toLowerCase() === "auto");
    if (!to.dryRun) for (const each of plan) checkPlanned(each, undefined, true);
    const writer = GgufWriter.from(converted);
    const finish = async (): Promise<void> => {
      await checkUnchanged(converted);
      converted.close();
    };
    return await writePlanned({ name: chosen.name, plan, writer, origin: { others: paths }, finish }, to);
  } finally {
    converted.close();
  }
}

function checkText(name: string, value: unknown): string | undefined {
  if (value !== undefined && typeof value !== "string") throw invalidArgType(name, "of type string", value);
  return value;
}

function checkWordRule(value: unknown): string | undefined {
  const rule = checkText("options.wordRule", value);
  if (rule === undefined || wordRuleNames.includes(rule)) return rule;
  const detail = `options.wordRule: no rule for words is called '${rule}'${didYouMean(rule, wordRuleNames)}`;
  throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail);
}

/** The 16-bit type of the first matrix that has one. */
function storedType(model: SafetensorsFile): GgmlType {
  const names = [...model.tensors].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [, { type, shape }] of names) {
    if (shape.length >= 2 && (type === "BF16" || type === "F16")) return type;
  }
  return "F16";
}

/** One type for all matrices; F16 where rows are not whole blocks of it. Those that are blocks stay so where `keeps` is true. */
function planPlain(model: RemoteGgufFile, type: GgmlType, keeps: boolean): PlannedTensor[] {
  return Array.from(model.tensors.values(), (tensor) => {
    const { name, shape } = tensor;
    const fits = (shape[0] as number) % ggmlTypes[type].blockSize === 0;
    const isKept = keeps && ggmlTypes[tensor.type as GgmlType].blockSize > 1;
    const to = isKept ? (tensor.type as GgmlType) : isAlwaysF32(name, shape) ? "F32" : fits ? type : "F16";
    const wanted = fits || to === "F32" ? undefined : type;
    return {
      tensor,
      to: to === tensor.type ? undefined : to,
      wanted,
      lacksImportance: false,
      weights: undefined,
    };
  });
}

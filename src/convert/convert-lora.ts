/** LoRA adapters of PEFT as GGUF files: {@link convertLora}. */

import { checkOptions, type OptionNames } from "../base/arguments";
import { textOf } from "../base/bytes";
import { GgufError, invalidArgType } from "../base/errors";
import { type GgmlType, ggmlTypes } from "../base/types";
import { OpenFile } from "../file/handle";
import { RemoteGgufFile, type RemoteOptions } from "../file/remote-file";
import { checkUnchanged } from "../file/unchanged";
import { VirtualSource, type VirtualTensor } from "../file/virtual-source";
import {
  checkTarget,
  type QuantizeModelOptions,
  type QuantizeReport,
  TARGET_OPTIONS,
  writePlanned,
} from "../quantize-model/quantize-model";
import { readFileOf } from "../safetensors/folder";
import { quotable } from "../safetensors/json-reader";
import type { SafetensorsFile, SafetensorsTensor } from "../safetensors/model";
import { openSafetensorsPlace } from "../safetensors/open-place";
import type { WriteOptions } from "../writer/write-options";
import { GgufWriter } from "../writer/writer";
import type { Architecture, Config, Entry } from "./architectures";
import {
  architectureOf,
  completeConfig,
  convertedTensor,
  encoded,
  FLOATS,
  isOfExperts,
  placeOf,
  reader,
  readJson,
  transposed,
} from "./converted-model";
import { FRONT_BYTES, frontMatter } from "./front-matter";
import { describe } from "./model-card";
import { folderName } from "./model-name";

/** Options of {@link convertLora}. */
export interface ConvertLoraOptions extends WriteOptions, Pick<QuantizeModelOptions, "threads" | "dryRun"> {
  /** The folder of the model that the adapter is for, or its URL. Only its `config.json` is read. */
  base: string | URL;
  /** The type of all matrices; `"f32"` is the default. */
  type?: "f32" | "f16" | "bf16" | "q8_0" | undefined;
  /** Sent with every request for a URL, as those of `openRemote`. */
  headers?: RemoteOptions["headers"];
}

const { tensors, search, ...TARGET } = TARGET_OPTIONS;

const OPTIONS: OptionNames<ConvertLoraOptions> = { ...TARGET, ...{ base: true, type: true, headers: true } };

const TYPES = { f32: "F32", f16: "F16", bf16: "BF16", q8_0: "Q8_0" } as const;

/** What `type` may be. */
export const LORA_TYPES: readonly string[] = Object.keys(TYPES);

const CONFIG = "adapter_config.json";
const WEIGHTS = "adapter_model.safetensors";

/** The highest rank that is read, of which common ones are a hundredth. */
const MAX_RANK = 2 ** 14;

/**
 * Writes the GGUF file of a LoRA adapter: a folder with `adapter_config.json` and `adapter_model.safetensors`, as PEFT saves
 * them. Names, order, bytes and metadata are those of llama.cpp's converter; but where `use_rslora` is set, `adapter.lora.alpha`
 * is the one that gives the right scale. The models that it may be for are those of `convertModel`.
 *
 * @param input a folder, or a URL of one
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for what such a file cannot say: another architecture, tensors that are no pairs of
 *   LoRA, scales that differ; ERR_GGUF_INVALID for a configuration or shapes that make no sense; otherwise as `convertModel`
 * @throws the reason of `options.signal` if it is aborted; then, as in all other cases, there is no new file
 */
export async function convertLora(
  input: string | URL,
  output: string | URL,
  options: ConvertLoraOptions,
): Promise<QuantizeReport> {
  const given = checkOptions(options, OPTIONS);
  const type = given.type ?? "f32";
  if (!Object.hasOwn(TYPES, type)) {
    throw invalidArgType("options.type", `one of ${LORA_TYPES.join(", ")}`, given.type);
  }
  if (given.base === undefined) throw invalidArgType("options.base", "a path or a URL", given.base);
  const to = checkTarget(output, given, OPTIONS);
  const headers = new Headers(given.headers);
  const [{ folder }, base] = [await placeOf(input, headers), await placeOf(given.base, headers)];
  const { signal } = to.options;
  const missing = (path: string): GgufError => new GgufError("ERR_GGUF_OPEN", "there is no such file", { path });
  const model = await readJson<Config>(base.folder, "config.json", signal);
  if (model === undefined) throw missing(`${base.folder.path}config.json`);
  const config = await readJson<Config>(folder, CONFIG, signal);
  if (config === undefined) throw missing(folder.path + CONFIG);
  const architecture = architectureOf(model, base.folder.path);
  const complete = completeConfig(architecture, model, `${base.folder.path}config.json`);
  const card = await readFileOf(folder, "README.md", FRONT_BYTES, signal, true);
  const described = card === undefined ? {} : frontMatter(textOf(card), `${folder.path}README.md`);
  const stored = await openSafetensorsPlace({ folder, name: WEIGHTS }, signal);
  try {
    const { tensors, weights, ranks } = adapterTensors(stored, architecture, complete);
    const own = folderName(folder.path);
    const about = describe(undefined, described, own === "" ? [] : [own], -weights);
    if (!about.some(([key]) => key === "general.name")) {
      about.unshift(["general.name", folderName(base.folder.path), "string"]);
    }
    const tokens = config.alora_invocation_tokens;
    const entries: Entry[] = [
      ["general.architecture", architecture.name, "string"],
      ["general.type", "adapter", "string"],
      ["adapter.type", "lora", "string"],
      ...about,
      ["adapter.lora.alpha", alphaOf(config, ranks, folder.path + CONFIG), "float32"],
      ...(Array.isArray(tokens) && tokens.length > 0
        ? [["adapter.alora.invocation_tokens", tokens, "uint32[]"] as const]
        : []),
      ["general.quantization_version", 2, "uint32"],
    ];
    const bytes = entries.map((entry) => encoded(entry, folder.path));
    const source = new VirtualSource(folder.path, bytes, tensors, {
      check: () => checkUnchanged(stored),
      close: async () => stored.close(),
    });
    const converted = RemoteGgufFile.of([Object.assign(new OpenFile(source.handle, folder.path), { source })]);
    const plan = Array.from(converted.tensors.values(), (tensor) => {
      const wanted = tensor.shape.length < 2 ? "F32" : TYPES[type];
      const fits = (tensor.shape[0] as number) % ggmlTypes[wanted].blockSize === 0;
      const chosen: GgmlType = fits ? wanted : "F16";
      return {
        ...{ tensor, to: chosen === tensor.type ? undefined : chosen, wanted: fits ? undefined : wanted },
        ...{ lacksImportance: false, weights: undefined },
      };
    });
    const writer = GgufWriter.from(converted);
    const paths = [...stored.paths, folder.path + CONFIG, `${folder.path}README.md`];
    const origin = { others: [...paths, `${base.folder.path}config.json`] };
    const finish = (): Promise<void> => checkUnchanged(stored);
    return await writePlanned({ name: TYPES[type], plan, writer, origin, finish }, to);
  } finally {
    stored.close();
  }
}

/** The number that all products are multiplied with, once it is divided by the rank. */
function alphaOf(config: Config, all: ReadonlySet<number>, path: string): number {
  const { lora_alpha: alpha, peft_type: kind = "LORA", alpha_pattern: pattern, use_dora: isDora } = config;
  if (typeof alpha !== "number" || !Number.isFinite(Math.fround(alpha))) {
    const detail = `lora_alpha must be a finite number, found ${quotable(String(alpha))}`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path });
  }
  const [rank = 1, ...ranks] = all;
  const isRootScaled = config.use_rslora === true;
  const [refused] = [
    kind !== "LORA" && `its peft_type is ${quotable(String(kind))}, not LORA`,
    isDora === true && "it is of the kind DoRA (use_dora): merge it into its model with PEFT",
    Object.values(Object(pattern)).some((each) => each !== alpha) &&
      "alpha_pattern has scales for single matrices, and an adapter in GGUF has one for all",
    isRootScaled && ranks.length > 0 && "use_rslora with several ranks needs several scales, and GGUF has one",
  ].filter((each) => each !== false);
  if (refused !== undefined) throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", refused, { path });
  return isRootScaled ? alpha * Math.sqrt(rank) : alpha;
}

/** What a name is without what PEFT puts around it, and which part of a pair it is. */
const PARTS = /\.lora_(?:embedding_)?([AB])(?:\.default)?(?:\.weight)?$/;

interface Adapted {
  tensors: VirtualTensor[];
  /** Weights of the matrices that are changed. */
  weights: number;
  ranks: Set<number>;
}

function adapterTensors(stored: SafetensorsFile, architecture: Architecture, config: Config): Adapted {
  const pairs = new Map<string, { A?: SafetensorsTensor; B?: SafetensorsTensor }>();
  const found: Adapted = { tensors: [], weights: 0, ranks: new Set() };
  const convert = (tensor: SafetensorsTensor, name: string): VirtualTensor => {
    const theirs = name
      .replace(/^model\.language_model\./, "model.")
      .replace(/^language_model\./, "")
      .replace(architecture.prefix ?? /^$/, "");
    const converted = convertedTensor(tensor, theirs, architecture, config, Number.POSITIVE_INFINITY);
    if (!isOfExperts(converted.name) && !architecture.transposed?.test(theirs)) return converted;
    const detail = "adapters of experts, and of matrices that GGUF has transposed, are not converted";
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: tensor.path, tensor: tensor.name });
  };
  for (const tensor of stored.tensors.values()) {
    const name = tensor.name.replace("base_model.model.", "");
    const part = PARTS.exec(name)?.[1] as "A" | "B" | undefined;
    if (part !== undefined) {
      const pair = name.replace(PARTS, ".weight");
      pairs.set(pair, { ...pairs.get(pair), [part]: tensor });
    } else if (/_layernorm|\.norm/.test(name) && tensor.shape.length === 1) {
      found.tensors.push(convert(tensor, name));
      found.weights += tensor.elementCount;
    } else if (!name.includes(".base_layer.weight")) {
      const detail = /(embed_tokens|lm_head)\.weight$/.test(name)
        ? "it is a whole matrix, as of a model with new tokens, which an adapter in GGUF cannot have: merge it with PEFT"
        : "it is no part of a pair lora_A and lora_B, which is all that is converted";
      throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: tensor.path, tensor: tensor.name });
    }
  }
  for (const [name, { A, B }] of pairs) {
    if (A === undefined || B === undefined) {
      const detail = `there is no lora_${A === undefined ? "A" : "B"} for it`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path: stored.paths[0], tensor: (A ?? B)?.name });
    }
    const rank = B.shape[0] as number;
    const isPair = A.shape.length === 2 && B.shape.length === 2 && A.shape[1] === rank && rank > 0;
    if (!isPair || rank > MAX_RANK) {
      const detail = `lora_A is ${A.shape.join(" x ")} and lora_B ${B.shape.join(" x ")}; they must be COLUMNS x RANK and RANK x ROWS, with a rank of 1 to ${MAX_RANK}`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path: A.path, tensor: A.name });
    }
    const b = convert(B, name);
    const type: GgmlType = FLOATS.has(A.type) ? (A.type as GgmlType) : "F32";
    const a: VirtualTensor = { name: A.name, type, shape: A.shape, read: reader(A, type, 0) };
    const isEmbedding = b.name === "token_embd.weight";
    found.tensors.push({ ...(isEmbedding ? transposed(a) : a), name: `${b.name}.lora_a` });
    found.tensors.push({ ...b, name: `${b.name}.lora_b` });
    found.weights += (B.shape[1] as number) * (isEmbedding ? rank : (A.shape[0] as number));
    found.ranks.add(rank);
  }
  return found;
}

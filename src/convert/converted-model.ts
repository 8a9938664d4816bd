/** A checkpoint as the GGUF model that it becomes, before anything is written: names, order, shapes, metadata, values. */

import { textOf } from "../base/bytes";
import { errorAbout, GgufError, invalidArgType } from "../base/errors";
import { type GgmlType, ggmlTypes } from "../base/types";
import { dequantizeSync } from "../decode/dequantize";
import { OpenFile } from "../file/handle";
import { checkPath } from "../file/open";
import { RemoteGgufFile } from "../file/remote-file";
import { checkUnchanged } from "../file/unchanged";
import { VirtualSource, type VirtualTensor } from "../file/virtual-source";
import { CURRENT_FORMAT } from "../layout/header-bytes";
import { quantizeSync } from "../quantize/quantize";
import { type Folder, type Place, readFileOf, remotePlace } from "../safetensors/folder";
import { quotable } from "../safetensors/json-reader";
import type { SafetensorsFile, SafetensorsTensor } from "../safetensors/model";
import { localPlace } from "../safetensors/open";
import { openSafetensorsPlace } from "../safetensors/open-place";
import { isRemote } from "../source/url";
import { checkType, encodeEntry } from "../writer/values";
import {
  ALIASES,
  ARCHITECTURES,
  type Architecture,
  architectureEntries,
  type Config,
  type Entry,
  labelsOf,
  NUMBERS,
} from "./architectures";
import { FRONT_BYTES, frontMatter } from "./front-matter";
import { describe } from "./model-card";
import { folderName, sizeLabel } from "./model-name";
import { type Convertible, unpacked } from "./quantized-checkpoint";
import { checkTokenizer, type TokenizerJson } from "./tokenizer-json";
import { type VocabularyFiles, vocabularyEntries } from "./vocabulary";

/** A checkpoint that is open. */
export interface Checkpoint {
  readonly model: SafetensorsFile;
  /** The same tensors with the names, shapes and numbers of GGUF. */
  readonly converted: RemoteGgufFile;
  /** All files that were looked for. */
  readonly paths: readonly string[];
}

/** The longest files that describe a model: vocabularies, and all others. */
const MAX_VOCABULARY_BYTES = 256 << 20;
const MAX_FILE_BYTES = 16 << 20;

/** The most values of a file of JSON: each takes some hundred bytes of memory, and large vocabularies have two million. */
const MAX_VALUES = 2 ** 23;

const CONFIG = "config.json";
const CARD = "README.md";

/** What is said of a model that is not of a kind that is converted. */
export class NotConverted extends GgufError {}

/**
 * Where a checkpoint is.
 * @param headers sent with requests for a URL
 */
export async function placeOf(input: string | URL, headers: Headers = new Headers()): Promise<Place> {
  if (typeof input !== "string" && !(input instanceof URL)) {
    throw invalidArgType("input", "a path or a URL", input);
  }
  return isRemote(input) ? remotePlace(String(input), undefined, headers) : localPlace(checkPath(input));
}

/** What is not in the files of a checkpoint, or takes the place of what is. */
export interface CheckpointOptions {
  readonly name?: string | undefined;
  readonly wordRule?: string | undefined;
  /** The number for `general.file_type`. */
  readonly fileType: (model: SafetensorsFile) => number;
}

/**
 * Opens the checkpoint in a folder.
 * @param opened its model, where that is open: it stays so if this fails
 * @throws NotConverted for an architecture that is not converted, and for a file that has no config.json beside it
 */
export async function openCheckpoint(
  place: Place,
  { name, wordRule, fileType }: CheckpointOptions,
  signal?: AbortSignal,
  opened?: SafetensorsFile,
): Promise<Checkpoint> {
  const paths: string[] = [];
  const { path, open } = place.folder;
  const folder: Folder = {
    path,
    open: (name) => {
      paths.push(path + name);
      return open(name);
    },
  };
  const config = await readJson<Config>(folder, CONFIG, signal);
  if (config === undefined) {
    // Where there is no such file at all, that is the error.
    const isFile = place.name !== undefined;
    if (isFile && opened === undefined) await (await folder.open(place.name)).close();
    const Failure = isFile ? NotConverted : GgufError;
    throw new Failure("ERR_GGUF_OPEN", "there is no config.json, which says what the model is", {
      path: folder.path,
    });
  }
  const architecture = architectureOf(config, folder.path);
  const configPath = folder.path + CONFIG;
  const complete = completeConfig(architecture, config, configPath);
  const extra = architecture.extraTensors?.(complete, configPath) ?? [];
  const files = await vocabularyFiles(folder, wordRule, signal);
  const vocabulary = vocabularyEntries(architecture, complete, files);
  const more = await optionalEntries(folder, signal);
  const card = await readFileOf(folder, CARD, FRONT_BYTES, signal, true);
  const described = card === undefined ? {} : frontMatter(textOf(card), folder.path + CARD);
  const model = opened ?? (await openSafetensorsPlace({ ...place, folder }, signal));
  const all = [model];
  try {
    const dense = architecture.hasDense ? await denseModules(folder, all, signal) : [];
    const tensors = [
      ...extra.map(([name, numbers]) => tensorOf(name, numbers)),
      ...dense.map(({ tensor }) => tensor),
      ...convertedTensors(model, architecture, complete, vocabulary.size),
    ];
    const weights = tensors.map(({ shape }) => shape.reduce((product, dim) => product * dim, 1));
    const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
    // Of experts, one counts.
    const experts = tensors.map(({ name, shape }) => (isOfExperts(name) ? (shape[2] as number) : 0));
    const times = Math.floor(sum(experts) / experts.filter(Boolean).length);
    const one = sizeLabel(sum(weights.map((count, i) => count / (experts[i] || 1))));
    const label = times > 0 ? `${times}x${one}` : one;
    const ids = [config._name_or_path, folderName(folder.path)].filter(
      (id): id is string => typeof id === "string" && id !== "" && id.split("/").length <= 2,
    );
    const vectors = [...dense.flatMap(({ entries }) => entries), ...more.pooling];
    const prefixed = ([key, value, type]: Entry): Entry => {
      return [key.startsWith("general.") ? key : `${architecture.name}.${key}`, value, type];
    };
    const own = architectureEntries(architecture, complete, fileType(model), vectors, configPath).map(prefixed);
    const first = (architecture.firstEntries?.(complete, configPath) ?? []).map(prefixed);
    const entries: Entry[] = [
      ["general.architecture", architecture.name, "string"],
      ...first,
      ["general.type", "model", "string"],
      ...more.general,
      ...describe(name, described, ids, sum(weights), label),
      ...own,
      ["general.quantization_version", 2, "uint32"],
      ...vocabulary.entries,
    ];
    // Of several entries with a key, the last one counts, at the place of the first.
    const unique = new Map(entries.map((entry) => [entry[0], entry]));
    const bytes = Array.from(unique.values(), (entry) => encoded(entry, folder.path));
    const source = new VirtualSource(folder.path, bytes, tensors, {
      check: async () => {
        for (const each of all) await checkUnchanged(each);
      },
      close: async () => {
        for (const each of all) each.close();
      },
    });
    const file = Object.assign(new OpenFile(source.handle, folder.path), { source });
    return { model, converted: RemoteGgufFile.of([file]), paths };
  } catch (error) {
    for (const each of all) if (each !== opened) each.close();
    throw error;
  }
}

/** @throws GgufError ERR_GGUF_INVALID for what the metadata cannot have, such as half a surrogate pair in a text */
export function encoded([key, value, type]: Entry, path: string): Uint8Array {
  try {
    return encodeEntry(CURRENT_FORMAT, key, value, checkType(type));
  } catch (cause) {
    if (cause instanceof GgufError) throw errorAbout(cause, { path });
    throw new GgufError("ERR_GGUF_INVALID", `${quotable(key)}: ${(cause as Error).message}`, { path, cause });
  }
}

/** With what it means where it says nothing, by the usual names. */
export function completeConfig(
  { name, defaults, expected = {}, derived }: Architecture,
  config: Config,
  path: string,
): Config {
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
  const wrong = NUMBERS.find((name) => name in given && typeof given[name] !== "number");
  if (wrong !== undefined) throw new GgufError("ERR_GGUF_INVALID", `${wrong} is no number`, { path });
  const allowed = (name: string): unknown[] => [expected[name]].flat();
  const other = Object.keys(expected).find((each) => each in given && !allowed(each).includes(given[each]));
  if (other !== undefined) {
    const detail = `a model of the kind ${name} is converted only where ${other} is ${allowed(other).join(" or ")}`;
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path });
  }
  for (const [alias, usual] of ALIASES) if (alias in given) given[usual] ??= given[alias];
  const whole: Config = { ...defaults, ...given };
  return { ...whole, ...derived?.(whole, config) };
}

export function architectureOf(config: Config, path: string): Architecture {
  const names: unknown = config.architectures;
  const name: unknown = Array.isArray(names) ? names[0] : undefined;
  const found = ARCHITECTURES.find(
    ({ classes, isMeant }) => classes.includes(name as string) && isMeant?.(config) !== false,
  );
  if (found !== undefined) return found;
  const known = [...new Set(ARCHITECTURES.flatMap(({ classes }) => classes))].join(", ");
  const given = typeof name === "string" ? `'${quotable(name)}'` : "not named";
  const detail = `its architecture is ${given}; converted are ${known}`;
  throw new NotConverted("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path });
}

/** Whether JSON has more brackets and commas than that, without which it has no more values. */
function mayHaveMore(bytes: Uint8Array, most: number): boolean {
  let count = 0;
  for (const byte of bytes) if ((byte | 0x20) === 0x7b || byte === 0x2c) count++;
  return count >= most;
}

/** A file of a checkpoint; undefined where there is none of this name. @internal */
export async function readJson<T>(
  folder: Folder,
  name: string,
  signal: AbortSignal | undefined,
  most = MAX_FILE_BYTES,
): Promise<T | undefined> {
  const bytes = await readFileOf(folder, name, most, signal);
  if (bytes === undefined) return undefined;
  const path = folder.path + name;
  if (mayHaveMore(bytes, MAX_VALUES)) {
    throw new GgufError("ERR_GGUF_RANGE", `it has more than ${MAX_VALUES} values`, { path });
  }
  let value: unknown;
  try {
    value = JSON.parse(textOf(bytes));
  } catch (cause) {
    throw new GgufError("ERR_GGUF_INVALID", `it is no JSON: ${(cause as Error).message}`, { path, cause });
  }
  if (typeof value === "object" && value !== null) return value as T;
  throw new GgufError("ERR_GGUF_INVALID", "it is no object of JSON", { path });
}

async function vocabularyFiles(
  folder: Folder,
  wordRule: string | undefined,
  signal: AbortSignal | undefined,
): Promise<VocabularyFiles> {
  const text = async (name: string): Promise<string | undefined> => {
    const read = await readFileOf(folder, name, MAX_FILE_BYTES, signal);
    return read && textOf(read);
  };
  const json = <T = Config>(name: string): Promise<T | undefined> => readJson<T>(folder, name, signal);
  const tokenizer = await readJson<TokenizerJson>(folder, "tokenizer.json", signal, MAX_VOCABULARY_BYTES);
  if (tokenizer !== undefined) checkTokenizer(tokenizer, `${folder.path}tokenizer.json`);
  return {
    path: folder.path,
    tokenizer,
    tokenizerConfig: await json("tokenizer_config.json"),
    addedTokens: await json<Record<string, number>>("added_tokens.json"),
    sentencePiece: await readFileOf(folder, "tokenizer.model", MAX_VOCABULARY_BYTES, signal),
    unigram: await readFileOf(folder, "sentencepiece.bpe.model", MAX_VOCABULARY_BYTES, signal),
    merges: await text("merges.txt"),
    vocabularyText: await text("vocab.txt"),
    chatTemplate: (await text("chat_template.jinja")) ?? (await json("chat_template.json"))?.chat_template,
    wordRule,
  };
}

/** What `generation_config.json` recommends, and its keys. */
const SAMPLING: readonly (readonly [theirs: string, key: string, type: "int32" | "float32"])[] = [
  ["top_k", "top_k", "int32"],
  ["top_p", "top_p", "float32"],
  ["min_p", "min_p", "float32"],
  ["temperature", "temp", "float32"],
  ["penalty_last_n", "penalty_last_n", "int32"],
  ["repetition_penalty", "penalty_repeat", "float32"],
];

/** How vectors of tokens become one, as it is said in two ways, and its number. */
const POOLING: readonly (readonly [flag: string, mode: string, number: number])[] = [
  ["pooling_mode_mean_tokens", "mean", 1],
  ["pooling_mode_cls_token", "cls", 2],
  ["pooling_mode_lasttoken", "lasttoken", 3],
];

/** What is done to a text one after the other, of those of a kind. @internal */
export async function modulesOf(
  folder: Folder,
  kind: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly path?: unknown }[]> {
  const modules = await readJson<unknown>(folder, "modules.json", signal);
  return (Array.isArray(modules) ? modules : []).filter(
    (module) => typeof module?.type === "string" && module.type.endsWith(kind),
  );
}

/** The names of matrices that the vector of a text is multiplied with, by their folders. */
const DENSE: ReadonlyMap<unknown, string> = new Map([
  ["2_Dense", "dense_2"],
  ["3_Dense", "dense_3"],
]);

/**
 * These matrices, and their sizes.
 * @param opened gets their files, which must be closed
 */
async function denseModules(
  folder: Folder,
  opened: SafetensorsFile[],
  signal: AbortSignal | undefined,
): Promise<{ tensor: VirtualTensor; entries: Entry[] }[]> {
  const found: { tensor: VirtualTensor; entries: Entry[] }[] = [];
  for (const { path } of await modulesOf(folder, "Dense", signal)) {
    const name = DENSE.get(path);
    const config = name && (await readJson<Config>(folder, `${path}/config.json`, signal));
    const { activation_function: activation = "Identity", ...sizes }: Config = config || {};
    if (name === undefined || typeof activation !== "string" || !activation.endsWith("Identity")) {
      const detail =
        "modules of the kind Dense are converted from the folders 2_Dense and 3_Dense, with an activation_function that is Identity";
      const file = name === undefined ? "modules.json" : `${path}/config.json`;
      throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: folder.path + file });
    }
    const model = await openSafetensorsPlace({ folder, name: `${path}/model.safetensors` }, signal);
    opened.push(model);
    const tensor = model.tensor("linear.weight");
    const { shape } = tensor;
    const { in_features = shape[0], out_features = shape[1] } = sizes;
    if (shape.length !== 2 || shape[0] !== in_features || shape[1] !== out_features || model.tensors.size > 1) {
      const detail = `it must be the only tensor, with the shape in_features x out_features, not ${shape.join(" x ")}`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path: tensor.path, tensor: tensor.name });
    }
    const type = FLOATS.has(tensor.type) ? (tensor.type as GgmlType) : "F32";
    found.push({
      tensor: { name: `${name}.weight`, type, shape, read: reader(tensor, type, 0) },
      entries: shape.map((length, i) => [`${name}_feat_${i === 0 ? "in" : "out"}`, length, "uint32"]),
    });
  }
  return found;
}

/** What files say that not every model has: how to choose tokens, and how vectors of texts are made. */
async function optionalEntries(
  folder: Folder,
  signal: AbortSignal | undefined,
): Promise<{ general: Entry[]; pooling: Entry[] }> {
  const generation = (await readJson<Config>(folder, "generation_config.json", signal)) ?? {};
  const general = SAMPLING.flatMap(([theirs, key, type]): Entry[] => {
    const value = generation[theirs];
    return typeof value === "number" ? [[`general.sampling.${key}`, value, type]] : [];
  });
  const path = (await modulesOf(folder, "Pooling", signal))[0]?.path;
  if (typeof path !== "string" || !/^[\w-]+$/.test(path)) return { general, pooling: [] };
  const config = (await readJson<Config>(folder, `${path}/config.json`, signal)) ?? {};
  const mode = POOLING.find(([flag, mode]) => config[flag] === true || config.pooling_mode === mode)?.[2];
  return { general, pooling: mode === undefined ? [] : [["pooling_type", mode, "uint32"]] };
}

function tensorOf(name: string, numbers: Float32Array): VirtualTensor {
  return {
    ...{ name, type: "F32", shape: [numbers.length] },
    read: async (begin, target) => target.set(new Uint8Array(numbers.buffer, begin, target.length)),
  };
}

/** The tensors in the order of the files, each with its name and numbers here. */
function convertedTensors(
  model: SafetensorsFile,
  architecture: Architecture,
  config: Config,
  vocabulary: number,
): VirtualTensor[] {
  const tensors: VirtualTensor[] = [];
  const count = Number(config.num_experts);
  const kinds = architecture.names.flatMap(([theirs, ours]) => (theirs.includes(".E.") ? `${ours}.weight` : []));
  /** Tensors of experts, by layer, until all of it are there. */
  const layers = new Map<string, Map<string, VirtualTensor>>();
  // A classifier of one matrix stands where others have their last one.
  const classifier = labelsOf(config.id2label).length > 0 ? "classifier.out_proj." : "classifier.";
  for (const [name, tensor] of unpacked(inOrder(model), config)) {
    const theirs = name
      .replace(architecture.prefix ?? /^$/, "")
      .replace(/\.gamma$/, ".weight")
      .replace(/\.beta$/, ".bias")
      .replace(/\.experts\.((down|gate_up)_proj|mlp\.w[12])$/, "$&.weight")
      .replace(/^classifier\.(?=weight$|bias$)/, classifier);
    if (architecture.unused?.test(theirs) || /\.(masked_bias|attention\.bias|inv_freq)$/.test(theirs)) continue;
    const converted = convertedTensor(tensor, theirs, architecture, config, vocabulary);
    const { layer, expert } = converted;
    if (expert === undefined) {
      tensors.push(...(isOfExperts(converted.name) ? fused(converted, count, tensor) : [converted]));
      continue;
    }
    if (!(Number.isInteger(count) && count > 0)) {
      const detail = `a layer has ${count} experts: num_experts must be a whole number above 0`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path: tensor.path, tensor: name });
    }
    const parts = layers.get(layer) ?? new Map<string, VirtualTensor>();
    layers.set(layer, parts.set(`${converted.name} ${expert}`, converted));
    if (parts.size < kinds.length * count) continue;
    for (const kind of kinds) tensors.push(stacked(kind.replace("N", layer), parts, count, model.paths[0]));
    layers.delete(layer);
  }
  for (const [layer, { size }] of layers) {
    const detail = `layer ${layer} has ${size} tensors of experts, not ${kinds.length} of each of ${count}`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path: model.paths[0] });
  }
  return tensors;
}

/** Whether a tensor has the matrices of all experts of a layer. */
export const isOfExperts = (name: string): boolean => name.includes("_exps.");

/** Matrices of all experts that are one tensor in the checkpoint; where they are twice as high, the upper and the lower halves. */
function fused(whole: VirtualTensor, count: number, { path, name: tensor }: Convertible): VirtualTensor[] {
  const { name, type, read } = whole;
  // Those of nomic-bert are below each other, and lie so that the last ones are multiplied from the left.
  const isFlat = /\.w[12]$/.test(tensor) && whole.shape.length === 2;
  const [columns = 0, all = 0] = whole.shape;
  const shape = isFlat ? [columns, all / count, count] : whole.shape;
  const rows = shape[1] ?? 0;
  const isBoth = name.includes("gate_up");
  if (shape.length !== 3 || shape[2] !== count || !Number.isInteger(isBoth ? rows / 2 : rows)) {
    const wanted = `COLUMNS x ${isBoth ? "an even number of " : ""}ROWS x num_experts, ${count}`;
    const detail = `its shape is ${shape.join(" x ")}; it must be ${wanted}`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path, tensor });
  }
  const { blockSize, typeSize } = ggmlTypes[type];
  if (isFlat && name.includes("down")) {
    return [{ name, type, shape: [rows, columns, count], read: columnsFirst(read, typeSize, columns, rows) }];
  }
  if (!isBoth) return [{ ...whole, shape }];
  const size = ((columns * rows) / 2 / blockSize) * typeSize;
  return ["gate", "up"].map((half, i) => ({
    ...{ name: name.replace("gate_up", half), type, shape: [columns, rows / 2, count] },
    read: inRuns(size, (run, from, target, signal) => read((2 * run + i) * size + from, target, signal)),
  }));
}

/** Reads runs of so many bytes. */
function inRuns(
  size: number,
  read: (run: number, from: number, target: Uint8Array, signal: AbortSignal | undefined) => Promise<void>,
): VirtualTensor["read"] {
  return async (begin, target, signal) => {
    for (let at = 0, length = 0; at < target.length; at += length) {
      const from = (begin + at) % size;
      length = Math.min(size - from, target.length - at);
      await read(Math.floor((begin + at) / size), from, target.subarray(at, at + length), signal);
    }
  };
}

/** The matrices of all experts as one tensor. */
function stacked(
  name: string,
  parts: ReadonlyMap<string, VirtualTensor>,
  count: number,
  path: string | undefined,
): VirtualTensor {
  const first = parts.get(`${name} 0`);
  const all = Array.from({ length: count }, (_, expert) => {
    const part = parts.get(`${name} ${expert}`);
    const isRight = part?.type === first?.type && part?.shape.length === 2;
    if (part !== undefined && isRight && `${part.shape}` === `${first?.shape}`) return part;
    const found = part === undefined ? "missing" : `${part.type} of ${part.shape.join(" x ")}`;
    const detail = `its experts must be matrices of one shape and type, as the first; number ${expert} is ${found}`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path, tensor: name });
  });
  const { type, shape } = all[0] as VirtualTensor;
  const { blockSize, typeSize } = ggmlTypes[type];
  const size = (((shape[0] as number) * (shape[1] as number)) / blockSize) * typeSize;
  const read = inRuns(size, (expert, ...rest) => (all[expert] as VirtualTensor).read(...rest));
  return { name, type, shape: [...shape, count], read };
}

function inOrder(model: SafetensorsFile): [string, SafetensorsTensor][] {
  const order = new Map(model.paths.map((path, i) => [path, i]));
  const fileOf = ({ path }: SafetensorsTensor): number => order.get(path as string) as number;
  return [...model.tensors].sort(([a, one], [b, other]) => fileOf(one) - fileOf(other) || (a < b ? -1 : 1));
}

/** The name of a tensor here, undefined where it is not known; the numbers of its layer and of its expert. */
function convertedName(
  { names }: Architecture,
  theirs: string,
): { name: string | undefined; layer: string; expert: string | undefined } {
  const [, stem = "", end = ""] = /^(.*)(\.weight|\.bias)$/s.exec(theirs) ?? [];
  const numbers: string[] = [];
  const pattern = stem.replaceAll(/(?<=\.|^)\d+(?=\.)/g, (number) => "NE"[numbers.push(number) - 1] ?? number);
  const found = names.find(([theirs]) => theirs === pattern || theirs === `model.${pattern}`);
  const [layer = "", expert] = numbers;
  // Of experts, only matrices are known.
  const name = found && (expert === undefined || end === ".weight") ? found[1].replace("N", layer) + end : undefined;
  return { name, layer, expert };
}

/** Whether a tensor has binary32 in every conversion: vectors, norms, and small tables. */
export function isAlwaysF32(name: string, shape: readonly number[]): boolean {
  return (
    shape.length < 2 ||
    !name.endsWith(".weight") ||
    name.endsWith("_norm.weight") ||
    /\.ffn_gate_inp(_shexp)?\.weight$/.test(name) ||
    name === "position_embd.weight" ||
    name === "token_types.weight"
  );
}

/** The longest rows that are put into another order, many times as long as those of known models. */
const MAX_COLUMNS = 2 ** 20;

export const FLOATS: ReadonlySet<string> = new Set(["F16", "BF16", "F32", "MXFP4", "Q4_0", "Q8_0"]);

export function convertedTensor(
  tensor: Convertible,
  theirs: string,
  architecture: Architecture,
  config: Config,
  vocabulary: number,
): VirtualTensor & { layer: string; expert: string | undefined } {
  const { name, ...place } = convertedName(architecture, theirs);
  if (name === undefined) {
    const detail = `an architecture of the kind ${architecture.name} has no such tensor`;
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: tensor.path, tensor: tensor.name });
  }
  const shape = [...tensor.shape];
  const invalid = (detail: string): GgufError =>
    new GgufError("ERR_GGUF_INVALID", detail, { path: tensor.path, tensor: tensor.name });
  // Rows for tokens that nobody has.
  if (architecture.isTrimmed && name === "token_embd.weight" && shape.length === 2) {
    shape[1] = Math.min(shape[1] as number, vocabulary);
  }
  const isTransposed = architecture.transposed?.test(theirs) === true;
  const hasType = isTransposed ? /^B?F/.test(tensor.type) : true;
  const type: GgmlType =
    isAlwaysF32(name, shape) || !hasType || !FLOATS.has(tensor.type) ? "F32" : (tensor.type as GgmlType);
  const plain = reader(tensor, type, architecture.shifted?.test(theirs) ? 1 : 0);
  const skipped = name === "position_embd.weight" ? (architecture.unusedPositions?.(config) ?? 0) : 0;
  if (skipped !== 0) {
    const [columns = 0, rows = 0] = shape;
    if (!(Number.isInteger(skipped) && skipped > 0 && skipped < rows)) {
      throw invalid(`of its ${rows} rows, the first ${skipped} are not used: pad_token_id + 1`);
    }
    shape[1] = rows - skipped;
    const start = skipped * columns * ggmlTypes[type].typeSize;
    return { name, type, shape, read: (begin, ...rest) => plain(start + begin, ...rest), ...place };
  }
  if (isTransposed) {
    if (shape.length !== 2) throw invalid(`it has ${shape.length} dimensions, not 2`);
    return { ...transposed({ name, type, shape, read: plain }), ...place };
  }
  const [, part] = /\.attn_([qk])\.(weight|bias)$/.exec(name) ?? [];
  if (!architecture.isPermuted || part === undefined) return { name, type, shape, read: plain, ...place };
  const heads = Number(part === "q" ? config.num_attention_heads : config.num_key_value_heads);
  const columns = shape.length === 1 ? 1 : (shape[0] as number);
  const rows = tensor.elementCount / columns;
  const { blockSize, typeSize } = ggmlTypes[type];
  const length = rows / heads;
  if (!(length > 0 && Number.isInteger(length / 2))) {
    throw invalid(`its ${rows} rows are not ${heads} heads of an even length`);
  }
  if (columns > MAX_COLUMNS) throw invalid(`its rows have ${columns} numbers; at most ${MAX_COLUMNS} are read`);
  const read = columnsFirst(plain, (columns / blockSize) * typeSize, length / 2, 2);
  return { name, type, shape, read, ...place };
}

/** Reads numbers of a tensor as another type, with a number added. */
export function reader(tensor: Convertible, type: GgmlType, shift: number): VirtualTensor["read"] {
  const { blockSize, typeSize: size } = ggmlTypes[type];
  return async (begin, target, signal) => {
    if (type === tensor.type && shift === 0) {
      const [first, last] = [Math.floor(begin / size), Math.ceil((begin + target.length) / size)];
      const bytes = await tensor.read({ start: first * blockSize, end: last * blockSize, signal });
      target.set(bytes.subarray(begin - first * size, begin - first * size + target.length));
      return;
    }
    const [start, end] = [begin / size, (begin + target.length) / size];
    const numbers = await tensor.dequantize({ start, end, signal });
    if (shift !== 0) {
      for (const [i, x] of numbers.entries()) numbers[i] = x + shift;
      // Where the checkpoint has binary16, the sum is one, too.
      if (tensor.type === "F16") numbers.set(roundedToF16(numbers));
    }
    target.set(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
  };
}

function roundedToF16(numbers: Float32Array): Float32Array {
  return dequantizeSync("F16", quantizeSync("F16", numbers));
}

/** A matrix with its columns as rows. */
export function transposed({ name, type, shape, read }: VirtualTensor): VirtualTensor {
  const [columns, rows] = shape as [number, number];
  return {
    ...{ name, type, shape: [rows, columns] },
    read: columnsFirst(read, ggmlTypes[type].typeSize, columns, rows),
  };
}

/**
 * Reads matrices that lie one after the other, the columns of each as rows: `columns` and `rows` of elements of so many bytes.
 * What is read at once is little more than what is asked for, or some rows: on a server, each read is a request.
 */
function columnsFirst(read: VirtualTensor["read"], size: number, columns: number, rows: number): VirtualTensor["read"] {
  const all = rows * columns;
  return async (begin, target, signal) => {
    const [first, last] = [Math.floor(begin / size), Math.ceil((begin + target.length) / size)];
    /** Reads elements of the checkpoint, and puts them where they belong, as far as that is asked for. */
    const copy = async (start: number, count: number): Promise<void> => {
      const bytes = new Uint8Array(count * size);
      await read(start * size, bytes, signal);
      for (let i = 0; i < count; i++) {
        const inMatrix = (start + i) % all;
        const place = start + i - inMatrix + (inMatrix % columns) * rows + Math.floor(inMatrix / columns);
        if (place < first || place >= last) continue;
        const at = place * size - begin;
        const [low, high] = [Math.max(0, -at), Math.min(size, target.length - at)];
        if (size > 64) target.set(bytes.subarray(i * size + low, i * size + high), at + low);
        else for (let byte = low; byte < high; byte++) target[at + byte] = bytes[i * size + byte] as number;
      }
    };
    const [from, to] = [Math.floor(first / all), Math.ceil(last / all)];
    if ((to - from) * all <= 3 * (last - first)) return copy(from * all, (to - from) * all);
    for (let matrix = from; matrix < to; matrix++) {
      const [low, high] = [Math.max(first, matrix * all), Math.min(last, (matrix + 1) * all)];
      const [left, right] = [Math.floor((low % all) / rows), Math.ceil((((high - 1) % all) + 1) / rows)];
      const atOnce = rows > 2 ? Math.floor(MAX_COLUMNS / columns) || 1 : 1;
      for (let row = 0; row < rows; row += atOnce) {
        const start = matrix * all + row * columns;
        if (atOnce === 1) await copy(start + left, right - left);
        else await copy(start, Math.min(atOnce, rows - row) * columns);
      }
    }
  };
}

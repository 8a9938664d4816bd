/** A model with the weights of another in fewer bits: {@link quantizeModel}. */
import { checkBoolean, checkOptions, checkThreads, type OptionNames } from "../base/arguments";
import { beginningOf } from "../base/bytes";
import { invalidArgType, invalidArgValue } from "../base/errors";
import { type GgmlType, ggmlTypes } from "../base/types";
import type { TensorComparison } from "../file/comparison";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { checkPath } from "../file/open";
import { checkSearch } from "../quantize/request";
import { openModelSource } from "../writer/model-source";
import type { Origin } from "../writer/replaced-files";
import { type CheckedWriteOptions, checkWriteOptions, WRITE_OPTIONS, type WriteOptions } from "../writer/write-options";
import { writeOutputs } from "../writer/write-outputs";
import { GgufWriter } from "../writer/writer";
import { type EncodedTensor, Encoder } from "./encode";
import { planForSize, type SizeChoice, type SizedPlan, type WantedSize } from "./fit-size";
import { ImportanceMatrix } from "./importance-matrix";
import { mixOf } from "./mixes";
import { checkPlanned, type PlannedTensor, planModel } from "./plan";

/** Options of {@link quantizeModel}. */
export interface QuantizeModelOptions extends WriteOptions {
  /** A mix of llama.cpp, such as `"Q4_K_M"`, or a type for all matrices alike that no mix is made of: MXFP4, NVFP4. */
  type?: string | undefined;
  /**
   * In place of `type`: the most bytes that the new file may have. Each matrix gets a type so that it fits, with little error;
   * the report has the `choice`.
   */
  targetBytes?: number | undefined;
  /** In place of `type`: the most bits for each weight, those of norms and other vectors included. */
  targetBits?: number | undefined;
  /** Types of tensors by their names or globs of names (`"blk.*.ffn_down.weight"`), in place of those of the mix. */
  tensors?: Readonly<Record<string, GgmlType>> | undefined;
  /** An importance matrix, as `llama-imatrix` writes them: a path, or an open GGUF file. */
  importance?: string | URL | GgufModel | undefined;
  /**
   * How blocks are searched for: `"ggml"`, the default, finds the bytes of llama.cpp; `"best"` ones with less error, where
   * {@link quantizeSync} has such a search for the type of the tensor, in up to about twenty times the time.
   */
  search?: "ggml" | "best" | undefined;
  /** How many threads encode at most; default: all. */
  threads?: number | undefined;
  /** Rounds again what is quantized already. Default false: that loses more than rounding the original. */
  allowRequantize?: boolean | undefined;
  /** Only says what would become of each tensor, and writes nothing. Default false. */
  dryRun?: boolean | undefined;
}

/** Options that `convertModel` has as well. */
export type TargetOptions = WriteOptions & Pick<QuantizeModelOptions, "tensors" | "search" | "threads" | "dryRun">;

export const TARGET_OPTIONS: OptionNames<TargetOptions> = {
  ...WRITE_OPTIONS,
  ...{ tensors: true, search: true, threads: true, dryRun: true },
};

const OPTIONS: OptionNames<QuantizeModelOptions> = {
  ...TARGET_OPTIONS,
  ...{ type: true, targetBytes: true, targetBits: true, importance: true, allowRequantize: true },
};

/** How far the numbers of a quantized tensor are from those before, as {@link GgufModelTensor.compare} has it. */
export type QuantizationError = Pick<TensorComparison, "snr" | "relativeError" | "rmsError" | "maxError">;

/** What became of a tensor. */
export interface QuantizedTensor {
  /** Its name, as in `tensors` of the model. */
  name: string;
  /** Its type before. */
  from: string;
  /** Its type in the new file. */
  to: string;
  /** How many weights it has. */
  elementCount: number;
  /** Bytes of its data before. */
  bytesBefore: number;
  /** Bytes of its data in the new file. */
  bytes: number;
  /** The type that the mix has for it, where its rows are no whole blocks of that. */
  wanted?: GgmlType;
  /** There where an adapter was added to it. */
  isMerged?: true;
  /** Whether the importance matrix had weights for it. */
  hasImportance: boolean;
  /** Whether it needs an importance matrix, which only a dry run goes on without. */
  lacksImportance: boolean;
  /** Absent where the tensor was copied as it is, and after a dry run. */
  error?: QuantizationError;
}

/** The result of {@link quantizeModel}. */
export interface QuantizeReport {
  /** The name of the mix, or the size that was wanted (`"4.5 bits"`); "" where tensors keep their types. */
  type: string;
  /** In the order of the file. */
  tensors: QuantizedTensor[];
  /** Weights of all tensors together. */
  elementCount: number;
  /** Bytes of all tensors together before. */
  bytesBefore: number;
  /** Bytes of all tensors together in the new file. */
  bytes: number;
  /** Bits for each weight before, those of norms and other vectors included. */
  bitsPerWeightBefore: number;
  /** Bits for each weight in the new file. */
  bitsPerWeight: number;
  /** Bytes of the new file. */
  byteLength: number;
  /** Where types were chosen for a size: what comes of them, and of the mixes of about that size. */
  choice?: SizeChoice;
  /**
   * What was there under the name of the new file: the model that is read, or another file, which only `overwrite` replaces.
   * Absent where nothing was.
   */
  replaces?: "input" | "other";
}

/**
 * Writes a model with the weights of another one, quantized by a mix of llama.cpp: the same types for the same tensors, and
 * the same metadata (`general.file_type`, `general.quantization_version`). What is no matrix of weights is copied, and so is
 * what has the right type.
 *
 * Tensors go through memory a piece at a time, so that it stays small however large the model is. The new file appears
 * once it is complete.
 *
 * @param input a path, a URL, or an open model of any kind: in several files, on a server, big-endian. The new file is one
 *   file, little-endian
 * @param output what is there is replaced, unless it is write-protected, or one of several files of `input`
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError as `open`; ERR_GGUF_UNSUPPORTED_TYPE for a mix that is not known, a tensor that is quantized already
 *   (without `allowRequantize`) or cannot get its type; ERR_GGUF_INVALID for an importance matrix that is none or does not
 *   fit, or where one is needed; ERR_GGUF_TENSOR_NOT_FOUND for `tensors` that fit none; ERR_GGUF_CHANGED if an input changes
 *   meanwhile; ERR_GGUF_WRITE
 * @throws the reason of `options.signal` if it is aborted; then, as in all other cases, there is no new file
 */
export async function quantizeModel(
  input: string | URL | GgufModel,
  output: string | URL,
  options: QuantizeModelOptions,
): Promise<QuantizeReport> {
  const given = checkOptions(options, OPTIONS);
  return writeQuantized(input, output, given, OPTIONS, checkTypes(given), async () => ({}));
}

/** What else is read for a new model, and what it changes. @internal */
export interface Addition {
  readonly plan?: (plan: readonly PlannedTensor[]) => PlannedTensor[];
  /** Its files. */
  readonly paths?: readonly string[];
  readonly finish?: () => Promise<void>;
  readonly close?: () => Promise<void>;
}

/**
 * Writes a model with other types, and what else is to be changed.
 * @param chosen the mix or the size; where it is absent, tensors keep their types
 * @internal
 */
export async function writeQuantized<O extends Omit<QuantizeModelOptions, "type" | "targetBytes" | "targetBits">>(
  input: string | URL | GgufModel,
  output: string | URL,
  given: O,
  names: OptionNames<O>,
  chosen: Chosen | WantedSize | undefined,
  add: (model: GgufModel, to: Target) => Promise<Addition>,
): Promise<QuantizeReport> {
  const allowRequantize = checkBoolean("options.allowRequantize", given.allowRequantize, false);
  const to = checkTarget(output, given, names);
  const { signal } = to.options;
  const importance = given.importance === undefined ? undefined : await ImportanceMatrix.open(given.importance);
  try {
    const source = await openModelSource(input, signal, !to.dryRun);
    let added: Addition = {};
    try {
      added = await add(source.model, to);
      const writerFor = (fileType?: number): GgufWriter => newWriter(source.model, fileType, importance);
      const stays = (tensor: GgufModelTensor): PlannedTensor => ({
        ...{ tensor, to: undefined, wanted: undefined },
        ...{ lacksImportance: false, weights: importance?.weights(tensor) },
      });
      const types = given.tensors;
      const planned =
        chosen === undefined
          ? { name: "", plan: Array.from(source.model.tensors.values(), stays) }
          : "mix" in chosen
            ? { ...chosen, ...chosen.mix, plan: planModel(source.model, chosen.mix, types, importance) }
            : await planForSize({
                ...{ ...chosen, model: source.model, types, importance, signal },
                ...{ fullBytes: writerFor(0).byteLength, how: { search: to.search, threads: to.threads } },
              });
      const { name, fileType, choice }: Pick<SizedPlan, "name"> & Partial<SizedPlan> = planned;
      const plan = added.plan?.(planned.plan) ?? planned.plan;
      if (!to.dryRun) for (const each of plan) checkPlanned(each, importance, allowRequantize);
      const writer = writerFor(fileType);
      const { model, others } = source.origin;
      const more = importance?.path === undefined ? [] : [importance.path];
      const origin = { model, others: [...others, ...more, ...(added.paths ?? [])] };
      const finish = async (): Promise<void> => {
        await importance?.check();
        await added.finish?.();
        await source.finish();
      };
      return {
        ...(await writePlanned({ name, plan, writer, origin, finish }, to)),
        ...(choice && { choice }),
      };
    } finally {
      await added.close?.();
      await source.close();
    }
  } finally {
    await importance?.close();
  }
}

/** A mix and its name. */
type Chosen = ReturnType<typeof mixOf>;

/** What decides about types: a mix, or the size that is wanted. */
function checkTypes(given: Partial<QuantizeModelOptions>): Chosen | WantedSize {
  const { targetBytes, targetBits } = given;
  const all = { type: given.type, targetBytes, targetBits };
  const names = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (names.length > 1) {
    const [first, second] = names as (keyof typeof all)[];
    throw invalidArgValue(`options.${second}`, `must be left out beside options.${first}`, all[second as "type"]);
  }
  const [name] = names as (keyof typeof all)[];
  if (name === undefined || name === "type") return mixOf(given.type);
  const wanted = all[name];
  if (typeof wanted !== "number") throw invalidArgType(`options.${name}`, "of type number", wanted);
  if (!(wanted > 0)) throw invalidArgValue(`options.${name}`, "must be more than 0", wanted);
  return { unit: name === "targetBytes" ? "bytes" : "bits", wanted };
}

/** A model that is written with some of its tensors in other types. @internal */
export interface PlannedModel {
  /** What the report calls the types. */
  readonly name: string;
  readonly plan: readonly PlannedTensor[];
  /** Has everything of the model but the new tensors. */
  readonly writer: GgufWriter;
  readonly origin: Origin;
  /** To be called before another file takes the place of what is read. */
  readonly finish: () => Promise<void>;
}

/** Where a planned model goes, and how. @internal */
export interface Target {
  readonly path: string;
  readonly search: "ggml" | "best";
  readonly threads: number | undefined;
  readonly dryRun: boolean;
  readonly options: CheckedWriteOptions;
}

/** Checks what `quantizeModel` and `convertModel` both have. Throws also where they are aborted. @internal */
export function checkTarget<O extends TargetOptions>(output: string | URL, given: O, names: OptionNames<O>): Target {
  const path = checkPath(output);
  if (path === "") throw invalidArgValue("output", "must not be empty", output);
  const options = checkWriteOptions(given, names);
  const dryRun = checkBoolean("options.dryRun", given.dryRun, false);
  const search = checkSearch(given.search);
  const threads = checkThreads(given.threads);
  options.signal?.throwIfAborted();
  return { path, search, threads, dryRun, options };
}

/** Writes a model as it is planned, or only says what would become of it. @internal */
export async function writePlanned(
  { name, plan, writer, origin, finish }: PlannedModel,
  { path, dryRun, options, ...how }: Target,
): Promise<QuantizeReport> {
  const errors = new Map<PlannedTensor, TensorComparison>();
  const stop = new AbortController();
  const encoder = new Encoder(plan.filter(isEncoded), stop.signal, how);
  for (const each of plan) {
    if (!isEncoded(each)) continue;
    const { name, shape } = each.tensor;
    writer.addTensor(name, each.to, shape, () => encoder.blocks(each, (error) => errors.set(each, error)));
  }
  const { byteLength } = writer;
  try {
    const output = { path, byteLength, chunks: writer.chunks() };
    const replaces = (await writeOutputs([output], origin, { ...options, dryRun }, finish)).get(path);
    return { ...report(name, plan, errors, byteLength), ...(replaces === undefined ? {} : { replaces }) };
  } finally {
    // Nothing may use the model once it is closed.
    stop.abort();
    await encoder.idle();
  }
}

function isEncoded(each: PlannedTensor): each is PlannedTensor & EncodedTensor {
  return each.to !== undefined;
}

/** The most bytes that llama.cpp keeps of a text. */
const MOST_TEXT = 127;

/** All of a model, and what says how it is quantized, if it is. */
function newWriter(
  model: GgufModel,
  fileType: number | undefined,
  importance: ImportanceMatrix | undefined,
): GgufWriter {
  const writer = GgufWriter.from(model);
  if (fileType === undefined) return writer;
  writer.set("general.quantization_version", 2, "uint32").set("general.file_type", fileType, "uint32");
  if (importance === undefined) return writer;
  const { path, datasets, size, chunkCount } = importance;
  const text = (key: string, value: string | undefined): void => {
    if (value === undefined) return;
    writer.set(`quantize.imatrix.${key}`, beginningOf(value, MOST_TEXT), "string");
  };
  text("file", path?.replace(/^.*[\\/]/s, ""));
  text("dataset", datasets[0]);
  writer.set("quantize.imatrix.entries_count", size, "uint32");
  if (chunkCount > 0) writer.set("quantize.imatrix.chunks_count", chunkCount, "uint32");
  return writer;
}

function report(
  type: string,
  plan: readonly PlannedTensor[],
  errors: ReadonlyMap<PlannedTensor, TensorComparison>,
  byteLength: number,
): QuantizeReport {
  const tensors = plan.map((each): QuantizedTensor => {
    const { to, wanted, weights, lacksImportance, merged } = each;
    const tensor = merged ?? each.tensor;
    const error = errors.get(each);
    return {
      ...{ name: tensor.name, from: tensor.type, to: to ?? tensor.type, elementCount: tensor.elementCount },
      ...{
        bytesBefore: tensor.byteLength,
        bytes: to === undefined ? tensor.byteLength : bytesAs(to, tensor),
      },
      ...(wanted === undefined ? {} : { wanted }),
      ...(merged === undefined ? {} : { isMerged: true as const }),
      ...{ hasImportance: weights !== undefined, lacksImportance },
      ...(error === undefined ? {} : { error: errorOf(error) }),
    };
  });
  const sum = (key: "elementCount" | "bytesBefore" | "bytes"): number =>
    tensors.reduce((total, each) => total + each[key], 0);
  const [elementCount, bytesBefore, bytes] = [sum("elementCount"), sum("bytesBefore"), sum("bytes")];
  const bits = (of: number): number => (elementCount === 0 ? 0 : (8 * of) / elementCount);
  return {
    ...{ type, tensors, elementCount, bytesBefore, bytes },
    ...{ bitsPerWeightBefore: bits(bytesBefore), bitsPerWeight: bits(bytes), byteLength },
  };
}

function bytesAs(type: GgmlType, { elementCount }: { elementCount: number }): number {
  const { blockSize, typeSize } = ggmlTypes[type];
  return (elementCount / blockSize) * typeSize;
}

function errorOf({ snr, relativeError, rmsError, maxError }: TensorComparison): QuantizationError {
  return { snr, relativeError, rmsError, maxError };
}

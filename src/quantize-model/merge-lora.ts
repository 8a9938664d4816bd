/** Models with adapters added to their weights: {@link mergeLora}. */
import { checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import type { ThreadOptions } from "../base/options";
import { recently } from "../base/recent";
import type { GgmlType } from "../base/types";
import { matmul } from "../decode/products";
import { OpenFile } from "../file/handle";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { RemoteGgufFile } from "../file/remote-file";
import { VirtualSource, type VirtualTensor } from "../file/virtual-source";
import { type ModelSource, openModelSource } from "../writer/model-source";
import { mixOf } from "./mixes";
import { type QuantizeModelOptions, type QuantizeReport, TARGET_OPTIONS, writeQuantized } from "./quantize-model";

/** Options of {@link mergeLora}. */
export interface MergeLoraOptions extends Omit<QuantizeModelOptions, "type" | "targetBytes" | "targetBits"> {
  /**
   * A mix of llama.cpp or a type, as `quantizeModel` has them. Default: every tensor keeps its type, and those that are changed
   * are rounded to it again. `tensors` goes with it.
   */
  type?: string | undefined;
  /** How much of the adapters is added, of all or of each. Default 1: what they were trained for. */
  scale?: number | readonly number[] | undefined;
}

const OPTIONS: OptionNames<MergeLoraOptions> = {
  ...TARGET_OPTIONS,
  ...{ type: true, importance: true, allowRequantize: true, scale: true },
};

/**
 * Writes a model with LoRA adapters in GGUF added to its weights: W + scale * alpha / rank * (B A), with sums in binary32. What
 * no adapter changes is copied, or quantized as `quantizeModel` does. Tensors go through memory a piece at a time, and of the
 * adapters a pair of matrices.
 *
 * @param input a path, a URL, or an open model of any kind
 * @param adapters paths, URLs or open models: what `convertLora` or llama.cpp's converter writes
 * @returns in which tensors with `isMerged` are those that adapters have changed
 * @throws GgufError ERR_GGUF_INVALID for what is no adapter, or one of another architecture or shapes; ERR_GGUF_TENSOR_NOT_FOUND for
 *   one that changes a tensor that the model lacks; ERR_GGUF_UNSUPPORTED_TYPE; otherwise as `quantizeModel`
 * @throws the reason of `options.signal` if it is aborted; then, as in all other cases, there is no new file
 */
export async function mergeLora(
  input: string | URL | GgufModel,
  adapters: readonly (string | URL | GgufModel)[],
  output: string | URL,
  options?: MergeLoraOptions,
): Promise<QuantizeReport> {
  const given = checkOptions(options, OPTIONS);
  if (!Array.isArray(adapters) || adapters.length === 0) {
    throw invalidArgType("adapters", "an array of at least one adapter", adapters);
  }
  const scales = checkScales(given.scale, adapters.length);
  const chosen = given.type === undefined ? undefined : mixOf(given.type);
  if (chosen === undefined && given.tensors !== undefined) {
    throw invalidArgValue("options.tensors", "must be left out where options.type is", given.tensors);
  }
  return writeQuantized(input, output, given, OPTIONS, chosen, async (model, to) => {
    const sources: ModelSource[] = [];
    const each = async (act: (source: ModelSource) => Promise<void>): Promise<void> => {
      for (const source of sources) await act(source);
    };
    const close = (): Promise<void> => each((source) => source.close());
    try {
      const products = new Map<string, Product[]>();
      for (const [i, adapter] of adapters.entries()) {
        const source = await openModelSource(adapter, to.options.signal, false);
        sources.push(source);
        for (const [name, product] of productsOf(source.model, model, scales[i] as number)) {
          products.set(name, [...(products.get(name) ?? []), product]);
        }
      }
      const sums = sumsOf(model, products, adapters.length, to);
      return {
        plan: (plan) =>
          plan.map((planned) => {
            const { tensor, to = tensor.type } = planned;
            const sum = sums.tensors.get(tensor.name);
            return sum === undefined ? planned : { ...planned, tensor: sum, to: to as GgmlType, merged: tensor };
          }),
        paths: sources.flatMap(({ origin }) => [...origin.model, ...origin.others]),
        finish: () => each((source) => source.finish()),
        close,
      };
    } catch (error) {
      await close();
      throw error;
    }
  });
}

function checkScales(given: unknown = 1, count: number): number[] {
  const scales: unknown[] = Array.isArray(given) ? given : new Array(count).fill(given);
  if (scales.length !== count) {
    throw invalidArgValue("options.scale", `must be one number, or ${count}: one for each adapter`, given);
  }
  return scales.map((scale) => {
    if (typeof scale !== "number") throw invalidArgType("options.scale", "a number, or an array of numbers", given);
    if (!Number.isFinite(Math.fround(scale))) throw invalidArgValue("options.scale", "must be finite", scale);
    return scale;
  });
}

type Recent = (key: string, make: () => Promise<Float32Array>) => Promise<Float32Array>;

/** What is added to a tensor. */
interface Product {
  readonly factor: number;
  readonly rank: number;
  /** As many rows of `rank` numbers as the tensor has. */
  readonly vectors: GgufModelTensor;
  /** What these are multiplied with to become rows of the tensor: `rank` columns, or as many rows, for each matrix. */
  readonly matrices: GgufModelTensor;
  readonly isTransposed: boolean;
}

/** The products of an adapter by names of the model's tensors. */
function* productsOf(adapter: GgufModel, model: GgufModel, scale: number): Generator<[string, Product]> {
  const [path] = adapter.paths;
  const { metadata, tensors } = adapter;
  const invalid = (detail: string, tensor?: string): GgufError =>
    new GgufError("ERR_GGUF_INVALID", detail, { path, tensor });
  const kind = metadata.get("adapter.type");
  if (kind !== "lora") throw invalid("it is no LoRA adapter: adapter.type is not 'lora'");
  if (metadata.has("adapter.alora.invocation_tokens")) {
    throw invalid("it works only after certain tokens (aLoRA), and cannot be merged");
  }
  const [theirs, ours] = [metadata.architecture, model.metadata.architecture];
  if (theirs !== ours) throw invalid(`it is for a model of the architecture ${theirs}, and this one is of ${ours}`);
  const alpha = metadata.number("adapter.lora.alpha") ?? 0;
  if (!Number.isFinite(alpha)) throw invalid(`adapter.lora.alpha is ${alpha}, not a finite number`);
  if (tensors.size === 0) throw invalid("it has no tensors");
  for (const part of tensors.values()) {
    const [, name, end] = /^(.*)\.lora_([ab])$/s.exec(part.name) ?? [];
    if (name === undefined) {
      throw invalid("it is no part of a pair lora_a and lora_b: 'remove' leaves such tensors out", part.name);
    }
    const other = tensors.get(`${name}.lora_${end === "a" ? "b" : "a"}`);
    if (other === undefined) throw invalid("the other part of its pair is missing", part.name);
    if (end === "b") continue;
    const target = model.tensor(name);
    if (target.scale !== undefined) {
      const detail = `the model's tensor has a second scale, '${target.scale.name}': merge into a model of another type`;
      throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: target.path, tensor: name });
    }
    const [a, b] = [part, other];
    const dims = ({ shape }: GgufModelTensor): number[] => [0, 1, 2, 3].map((i) => shape[i] ?? 1);
    const [columns, rows, ...experts] = dims(target);
    const [rank = 0] = dims(b);
    // For embeddings, what is a column of other matrices is a row.
    const isEmbedding = name === "token_embd.weight";
    const wantedA = isEmbedding ? [rank, rows, ...experts] : [columns, rank, ...experts];
    const wantedB = isEmbedding ? [rank, columns, ...experts] : [rank, rows, ...experts];
    if (rank === 0 || String(dims(a)) !== String(wantedA) || String(dims(b)) !== String(wantedB)) {
      const detail = `lora_a is ${a.shape.join(" x ")} and lora_b ${b.shape.join(" x ")}, which do not fit the model's tensor, ${target.shape.join(" x ")}`;
      throw invalid(detail, part.name);
    }
    const factor = alpha === 0 ? scale : (scale * alpha) / rank;
    const parts = isEmbedding ? { vectors: a, matrices: b } : { vectors: b, matrices: a };
    yield [name, { factor, rank, ...parts, isTransposed: !isEmbedding }];
  }
}

/** The tensors that are changed, as they become, in binary32. */
function sumsOf(
  model: GgufModel,
  products: ReadonlyMap<string, readonly Product[]>,
  count: number,
  how: ThreadOptions,
): RemoteGgufFile {
  // Pieces of two tensors may be under way at a time.
  const recent: Recent = recently(2 * count);
  const tensors = Array.from(products, ([name, all]) => sumOf(model.tensor(name), all, how, recent));
  const [path = ""] = model.paths;
  const nothing = async (): Promise<void> => undefined;
  const source = new VirtualSource(path, [], tensors, { check: nothing, close: nothing });
  return RemoteGgufFile.of([Object.assign(new OpenFile(source.handle, path), { source })]);
}

function sumOf(
  tensor: GgufModelTensor,
  products: readonly Product[],
  { threads }: ThreadOptions,
  recent: Recent,
): VirtualTensor {
  const { name, shape } = tensor;
  const [columns = 1, height = 1] = shape;
  return {
    ...{ name, type: "F32", shape },
    read: async (begin, target, signal) => {
      const [start, end] = [begin / 4, (begin + target.length) / 4];
      const [first, last] = [Math.floor(start / columns), Math.ceil(end / columns)];
      const how = { signal, threads };
      const sums = await tensor.dequantize({ start: first * columns, end: last * columns, ...how });
      for (const [i, product] of products.entries()) {
        const { factor, rank, vectors } = product;
        for (let row = first; row < last; ) {
          const matrix = Math.floor(row / height);
          const stop = Math.min(last, (matrix + 1) * height);
          const out = sums.subarray((row - first) * columns, (stop - first) * columns);
          const x = await vectors.dequantize({ start: row * rank, end: stop * rank, ...how });
          const key = `${name} ${i} ${matrix}`;
          const blocks = recent(key, () => matrixAt(product, matrix, columns));
          await matmul("F32", await blocks, rank, x, {
            out,
            factor,
            accumulate: true,
            ...how,
          });
          row = stop;
        }
      }
      const from = sums.byteOffset + 4 * (start - first * columns);
      target.set(new Uint8Array(sums.buffer, from, target.length));
    },
  };
}

/** What vectors are multiplied with: rows of as many numbers as the rank. */
async function matrixAt({ matrices, rank, isTransposed }: Product, index: number, columns: number) {
  const length = columns * rank;
  const numbers = await matrices.dequantize({ start: index * length, end: (index + 1) * length });
  if (!isTransposed) return numbers;
  return numbers.map((_, i) => numbers[(i % rank) * columns + Math.floor(i / rank)] as number);
}

/**
 * The side of the worker: opens models, and answers what the page asks about them. It knows neither the page nor how
 * messages travel. Work on values goes piece by piece, with a breath between pieces in which a cancellation arrives.
 */

import type { GgufModel, GgufModelTensor } from "gguf-native";
import { ggmlTypes } from "#dist/base/types";
import { blockParts } from "#dist/describe/blocks";
import { LAYOUT_KEYS } from "#dist/describe/layout-keys";
import { memoryUse } from "#dist/describe/memory";
import { metadataText, stringText } from "#dist/describe/metadata-text";
import { sameValue } from "#dist/describe/same-value";
import { countOf } from "#dist/describe/scalars";
import { summaryFacts } from "#dist/describe/summary";
import { escapeText, shapeText, shorten } from "#dist/describe/text";
import { typeTotals } from "#dist/describe/type-totals";
import { arrayTexts, linesOf } from "#dist/describe/value-pages";
import { valuesOf } from "#dist/describe/values";
import { TOKENS_KEY, vocabularyTokens } from "#dist/describe/vocabulary";
import { Averages, type Picture } from "./averages";
import { blockScales, type Decode, hasScales } from "./block-scales";
import type {
  CallName,
  Calls,
  FromWorker,
  ModelSource,
  ModelView,
  TensorAddress,
  TensorTable,
  ToWorker,
  ValueView,
} from "./protocol";

export type Model = GgufModel<GgufModelTensor>;

/** What opens models and decodes blocks: the library, or another one in tests. */
export interface Library {
  open(source: ModelSource, options: { partial: boolean; signal: AbortSignal }): Promise<Model>;
  readonly decode: Decode;
  /** Lets messages arrive. */
  breath(): Promise<void>;
}

/** How an answer to a call goes on. */
interface Work {
  readonly signal: AbortSignal;
  onProgress(done: number, total: number): void;
}

type Answers = {
  [N in CallName]: (
    argument: Parameters<Calls[N]>[0],
    work: Work,
  ) => ReturnType<Calls[N]> | Promise<ReturnType<Calls[N]>>;
};

interface OpenModel {
  readonly model: Model;
  readonly tensors: readonly GgufModelTensor[];
  readonly keys: readonly string[];
}

/** The most characters of a name that are shown. */
const MOST_NAME = 300;
/** The most bytes of a text that are shown. */
const MOST_TEXT = 1 << 18;
/** The most tokens that are shown, and the most characters of each. */
const MOST_TOKENS = 1 << 20;
const MOST_TOKEN = 100;
/** Values that are decoded at a time. */
const PIECE = 1 << 20;

/** Answers messages; `post` sends what it answers. */
export function serve(library: Library, post: (message: FromWorker) => void): (message: ToWorker) => void {
  const answers = answersOf(library);
  const running = new Map<number, AbortController>();
  return (message) => {
    const { id } = message;
    if ("cancel" in message) {
      running.get(id)?.abort();
      return;
    }
    const controller = new AbortController();
    running.set(id, controller);
    const { signal } = controller;
    const work = { signal, onProgress: (done: number, total: number) => post({ id, done, total }) };
    const answer = answers[message.call] as (argument: unknown, work: Work) => unknown;
    Promise.resolve()
      .then(() => answer(message.argument, work))
      .then((result) => post({ id, result }))
      .catch((error: unknown) => post({ id, error: sentenceOf(error) }))
      .finally(() => running.delete(id));
  };
}

/** What is said of an error. Messages have names of files in them. */
function sentenceOf(error: unknown): string {
  return shorten(escapeText(error instanceof Error ? error.message : String(error)), 1000);
}

function nameText(name: string): string {
  return shorten(escapeText(name.slice(0, MOST_NAME + 1)), MOST_NAME);
}

function answersOf(library: Library): Answers {
  const { breath } = library;
  const models = new Map<number, OpenModel>();
  let lastId = 0;
  const modelOf = (id: number): OpenModel => {
    const open = models.get(id);
    if (open === undefined) throw new Error("the model was closed");
    return open;
  };
  const tensorOf = ({ model, tensor }: TensorAddress): GgufModelTensor =>
    modelOf(model).tensors[tensor] as GgufModelTensor;

  return {
    async open(source, { signal }) {
      const { model, warning } = await openModel(library, source, signal);
      const id = ++lastId;
      const open = { model, tensors: [...model.tensors.values()], keys: [...model.metadata.keys()] };
      models.set(id, open);
      return { ...viewOf(open, source, id), ...(warning === undefined ? {} : { warning }) };
    },
    close(id) {
      models.get(id)?.model.close();
      models.delete(id);
    },
    value({ model, key, first, count }) {
      const { keys, model: file } = modelOf(model);
      return valueView(file, keys[key] as string, first, count);
    },
    vocabulary(id) {
      const { metadata } = modelOf(id).model;
      const tokens: string[] = [];
      const types: (string | undefined)[] = [];
      const scores: (number | undefined)[] = [];
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      for (const { bytes, type, score } of vocabularyTokens(metadata)) {
        if (tokens.length === MOST_TOKENS) break;
        const text = decoder.decode(bytes.subarray(0, 4 * MOST_TOKEN));
        tokens.push(shorten(escapeText(text), MOST_TOKEN));
        types.push(type);
        scores.push(score);
      }
      return { tokens, types, scores, count: tokenCountOf(modelOf(id).model) };
    },
    memory: ({ model, context }) => memoryUse(modelOf(model).model, context),
    stats: ({ model, tensor, bins }, { signal, onProgress }) =>
      tensorOf({ model, tensor }).stats({ bins, signal, onProgress }),
    async picture({ model, tensor, width, height }, work) {
      const from = tensorOf({ model, tensor });
      return averaged(from, { width, height, breath }, work, (start, end) =>
        from.dequantize({ start, end, signal: work.signal }),
      );
    },
    async values({ model, tensor, row, column, rows, columns }, { signal }) {
      const from = tensorOf({ model, tensor });
      const { columnCount, rowCount } = matrixOf(from);
      const values: Float32Array[] = [];
      for (let r = row; r < Math.min(row + rows, rowCount); r++) {
        signal.throwIfAborted();
        const count = Math.min(columns, columnCount - column);
        values.push(await valuesOf(from, r * columnCount + column, count));
      }
      return { rowCount, columnCount, row, column, values };
    },
    async scales({ model, tensor, first, count }, { signal }) {
      const from = tensorOf({ model, tensor });
      const { type } = from;
      if (!hasScales(type)) return null;
      const { blockSize } = ggmlTypes[type];
      const blockCount = from.elementCount / blockSize;
      const end = Math.min(first + count, blockCount) * blockSize;
      const blocks = await from.read({ start: first * blockSize, end, signal });
      const { byteOrder } = modelOf(model).model;
      return { blockCount, blockSize, first, scales: blockScales(type, blocks, byteOrder, library.decode) };
    },
    compare: ({ a, b }, { signal, onProgress }) => tensorOf(a).compare(tensorOf(b), { signal, onProgress }),
    async difference({ a, b, width, height }, work) {
      const [one, other] = [tensorOf(a), tensorOf(b)];
      const { signal } = work;
      return averaged(one, { width, height, breath }, work, async (start, end) => {
        const [values, others] = await Promise.all([
          one.dequantize({ start, end, signal }),
          other.dequantize({ start, end, signal }),
        ]);
        for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) - (others[i] as number);
        return values;
      });
    },
    differentKeys({ a, b }) {
      const [one, other] = [modelOf(a), modelOf(b)];
      const text = ({ model: { metadata } }: OpenModel, key: string): string | undefined =>
        metadata.has(key) ? metadataText(metadata, key)[1] : undefined;
      return [...new Set([...one.keys, ...other.keys])].flatMap((key) => {
        if (LAYOUT_KEYS.has(key) || sameValue(one.model.metadata, other.model.metadata, key)) return [];
        return [{ key: nameText(key), a: text(one, key), b: text(other, key) }];
      });
    },
  };
}

/** Opens a model, one that is cut off too: then there is a warning. */
async function openModel(
  library: Library,
  source: ModelSource,
  signal: AbortSignal,
): Promise<{ model: Model; warning?: string }> {
  try {
    return { model: await library.open(source, { partial: false, signal }) };
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_GGUF_TRUNCATED") throw error;
    return { model: await library.open(source, { partial: true, signal }), warning: sentenceOf(error) };
  }
}

function viewOf({ model, tensors, keys }: OpenModel, source: ModelSource, id: number): ModelView {
  const { metadata } = model;
  const architecture = stringText(metadata, "general.architecture");
  return {
    id,
    name: nameText(nameOf(source)),
    facts: summaryFacts(model),
    types: [...typeTotals(tensors)],
    metadata: keys.map((key) => {
      const [type, text] = metadataText(metadata, key);
      return { key: nameText(key), type, text };
    }),
    tensors: tableOf(tensors),
    tokenCount: tokenCountOf(model),
    contextLength: countOf(metadata, `${architecture}.context_length`) ?? null,
  };
}

/** The name of the file: the last part of a URL without its query, which may hold a signature. */
function nameOf(source: ModelSource): string {
  if ("files" in source) return source.files[0]?.name ?? "";
  const path = source.url.replace(/[?#].*$/s, "");
  const name = path.slice(path.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function tableOf(tensors: readonly GgufModelTensor[]): TensorTable {
  const types = new Map<string, number>();
  const blocks = new Map<string, number>();
  const numberIn = (numbers: Map<string, number>, name: string): number => {
    const number = numbers.get(name) ?? numbers.size;
    numbers.set(name, number);
    return number;
  };
  const typeOf = Uint32Array.from(tensors, ({ type }) => numberIn(types, type));
  const blockOf = Int32Array.from(tensors, ({ name }) => {
    const parts = blockParts(name);
    return parts === undefined ? -1 : numberIn(blocks, nameText(`${parts[0]}.${parts[1]}`));
  });
  return {
    names: tensors.map(({ name }) => nameText(name)),
    types: [...types.keys()],
    typeOf,
    shapes: tensors.map(({ shape }) => shapeText(shape)),
    elementCounts: Float64Array.from(tensors, ({ elementCount }) => elementCount),
    byteLengths: Float64Array.from(tensors, ({ byteLength }) => byteLength),
    offsets: Float64Array.from(tensors, ({ offset }) => offset),
    blocks: [...blocks.keys()],
    blockOf,
  };
}

function tokenCountOf({ metadata }: Model): number {
  const type = metadata.typeOf(TOKENS_KEY);
  return type?.type === "array" && type.elementType === "string" ? type.length : 0;
}

function valueView({ metadata }: Model, key: string, first: number, count: number): ValueView {
  const type = metadata.typeOf(key);
  if (type?.type === "array") {
    const elements = arrayTexts(metadata, key, first, count);
    return { kind: "array", first, elements, length: type.length };
  }
  if (type?.type === "string") {
    const { lines, byteLength, isCut } = linesOf(metadata, key, MOST_TEXT);
    return { kind: "text", text: lines.join("\n"), byteLength, isCut };
  }
  const [, text] = metadataText(metadata, key);
  return { kind: "text", text, byteLength: text.length, isCut: false };
}

/** A tensor as a matrix: the rows of all dimensions but the first. */
function matrixOf({ shape, elementCount }: GgufModelTensor): { columnCount: number; rowCount: number } {
  const columnCount = shape[0] ?? 1;
  return { columnCount, rowCount: columnCount === 0 ? 0 : elementCount / columnCount };
}

/** Averages values down to a picture, which are read in their order. */
async function averaged(
  tensor: GgufModelTensor,
  { width, height, breath }: { width: number; height: number; breath: () => Promise<void> },
  { signal, onProgress }: Work,
  read: (start: number, end: number) => Promise<Float32Array>,
): Promise<Picture> {
  const { columnCount, rowCount } = matrixOf(tensor);
  const averages = new Averages(columnCount, rowCount, width, height);
  for (let start = 0; start < tensor.elementCount; start += PIECE) {
    const end = Math.min(start + PIECE, tensor.elementCount);
    averages.add(await read(start, end));
    onProgress(end, tensor.elementCount);
    await breath();
    signal.throwIfAborted();
  }
  return averages.picture();
}

/**
 * The side of the worker: opens models, and answers what the page asks about them. It knows neither the page nor how
 * messages travel. Work on values goes piece by piece, with a breath between pieces in which a cancellation arrives.
 */

import type { GgufModel, GgufModelTensor } from "gguf-native";
import { ggmlTypes } from "#dist/base/types";
import { keysByKind } from "#dist/describe/keys-by-kind";
import { LAYOUT_KEYS } from "#dist/describe/layout-keys";
import { memoryUse } from "#dist/describe/memory";
import { metadataText, stringText } from "#dist/describe/metadata-text";
import { sameValue } from "#dist/describe/same-value";
import { summaryFacts } from "#dist/describe/summary";
import { nameText, tensorTable } from "#dist/describe/tensor-table";
import { escapeText, grouped, shorten } from "#dist/describe/text";
import { typeTotals } from "#dist/describe/type-totals";
import { arrayTexts, linesOf } from "#dist/describe/value-pages";
import { valuesOf } from "#dist/describe/values";
import { TOKENS_KEY, vocabularyTokens } from "#dist/describe/vocabulary";
import { countOf } from "#dist/file/scalars";
import { Tokenizer } from "#dist/tokenizer/tokenizer";
import { Averages, type Picture } from "./averages";
import { blockScales, blockView, type Decode, hasScales } from "./block-scales";
import { type TemplateTask, templateTask } from "./chat-template";
import {
  type CallName,
  type Calls,
  type Found,
  type FromWorker,
  type ModelSource,
  type ModelView,
  modelsIn,
  type Region,
  type TensorAddress,
  type ToWorker,
  type ValueView,
} from "./protocol";
import { textTokens } from "./text-tokens";

export type Model = GgufModel<GgufModelTensor>;

/** What opens models and decodes blocks: the library, or another one in tests. */
export interface Library {
  open(source: ModelSource, options: { partial: boolean; signal: AbortSignal }): Promise<Model>;
  /** Throws where a file has changed since it was opened, unless reading it does. */
  check?(model: Model): Promise<void>;
  readonly decode: Decode;
  /** Runs a chat template, which is ended where it takes too long. */
  render(task: TemplateTask, signal: AbortSignal): Promise<string>;
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
  /** Made when it is first asked for. */
  tokenizer?: Tokenizer;
}

/** The most bytes of a text that are shown. */
const MOST_TEXT = 1 << 18;
/** The most tokens that are shown, and the most characters of each. */
const MOST_TOKENS = 1 << 20;
const MOST_TOKEN = 100;
/** The most characters that are shown of what a chat template writes. */
const MOST_RENDERED = 1 << 16;
/** Values that are decoded at a time. */
const PIECE = 1 << 20;
/** A multiple of every block size. */
const ALIGNMENT = 256;
/** Models that are open at a time: one that was not used for longest is closed. */
const MOST_MODELS = 8;

/** Answers messages; `post` sends what it answers. Models get the numbers from `firstModel` on. */
export function serve(
  library: Library,
  post: (message: FromWorker) => void,
  firstModel = 1,
): (message: ToWorker) => void {
  const models = new OpenModels(firstModel);
  const answers = answersOf(library, models);
  const running = new Map<number, AbortController>();
  const answerTo = async (call: CallName, argument: unknown, work: Work): Promise<unknown> => {
    const answer = answers[call] as (argument: unknown, work: Work) => unknown;
    const result = await answer(argument, work);
    if (library.check !== undefined && call !== "open" && call !== "close") {
      for (const id of new Set(modelsIn(argument))) await library.check(models.get(id).model);
    }
    return result;
  };
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
    answerTo(message.call, message.argument, work)
      .then((result) => post({ id, result }))
      .catch((error: unknown) => post({ id, error: sentenceOf(error) }))
      .finally(() => running.delete(id));
  };
}

/** An address in a message; what follows it is none of it. */
const ADDRESS = /https?:\/\/\S*\/([^\s/]+?)(?=[:,.;)]*(?:\s|$))/g;

/** What is said of an error. Files have their names alone: an address may have a secret in it, as that of the local server. */
function sentenceOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return shorten(escapeText(message.replace(ADDRESS, (_, name: string) => decoded(name))), 1000);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Models by their numbers. */
class OpenModels {
  /** The one that was used last is the last one. */
  readonly #models = new Map<number, OpenModel>();
  #next: number;

  constructor(first: number) {
    this.#next = first;
  }

  get(id: number): OpenModel {
    const open = this.#models.get(id);
    if (open === undefined) throw new Error("the model was closed: reload the page");
    this.#models.delete(id);
    this.#models.set(id, open);
    return open;
  }

  add(open: OpenModel): number {
    const id = this.#next++;
    this.#models.set(id, open);
    for (const oldest of [...this.#models.keys()].slice(0, -MOST_MODELS)) this.close(oldest);
    return id;
  }

  close(id: number): void {
    this.#models.get(id)?.model.close();
    this.#models.delete(id);
  }
}

/** An element of a list by its number, which the page has from what it was told of the model. */
function at<T>(list: readonly T[], index: number, what: string): T {
  const element = list[index];
  if (element === undefined) throw new Error(`there is no ${what} ${index}`);
  return element;
}

function answersOf(library: Library, models: OpenModels): Answers {
  const { breath } = library;
  const tensorOf = ({ model, tensor }: TensorAddress): GgufModelTensor =>
    at(models.get(model).tensors, tensor, "tensor");

  return {
    async open(source, { signal }) {
      const { model, warning } = await openModel(library, source, signal);
      const keys = [...keysByKind(model.metadata, model.metadata.keys()).values()].flat();
      const open = { model, tensors: [...model.tensors.values()], keys };
      const view = viewOf(open, source, models.add(open));
      return { ...view, ...(warning === undefined ? {} : { warning }) };
    },
    close: (id) => models.close(id),
    value({ model, key, first, count }) {
      const { keys, model: file } = models.get(model);
      return valueView(file, at(keys, key, "key"), first, count);
    },
    vocabulary(id) {
      const { metadata } = models.get(id).model;
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
      return { tokens, types, scores, count: tokenCountOf(models.get(id).model) };
    },
    tokens({ model, text, special }) {
      const open = models.get(model);
      open.tokenizer ??= tokenizerOf(open.model);
      return textTokens(open.tokenizer, text, special);
    },
    template({ model, key, conversation }) {
      const { keys, model: file } = models.get(model);
      return templateTask(file.metadata, at(keys, key, "key"), conversation, Date.now());
    },
    async render(task, { signal }) {
      const text = await library.render(task, signal);
      const lines = text.slice(0, MOST_RENDERED).split("\n");
      return { text: lines.map(escapeText).join("\n"), isCut: text.length > MOST_RENDERED };
    },
    memory: ({ model, context }) => memoryUse(models.get(model).model, context),
    stats: ({ model, tensor, bins }, { signal, onProgress }) =>
      tensorOf({ model, tensor }).stats({ ...(bins > 0 && { bins }), signal, onProgress }),
    async picture({ model, tensor, width, height, region }, work) {
      const from = tensorOf({ model, tensor });
      return averaged(from, { width, height, region, breath }, work, (start, end, out) =>
        from.dequantize({ start, end, out, signal: work.signal }),
      );
    },
    async weight({ model, tensor, row, column }, { signal }) {
      const from = tensorOf({ model, tensor });
      const { columnCount, rowCount } = matrixOf(from);
      if (row >= rowCount || column >= columnCount) throw new Error("there is no such weight");
      const element = row * columnCount + column;
      const [value = Number.NaN] = await valuesOf(from, element, 1);
      if (!hasScales(from.type)) return { row, column, value, block: null };
      const { byteOrder } = models.get(model).model;
      const { blockSize } = ggmlTypes[from.type];
      const start = Math.floor(element / blockSize) * blockSize;
      const bytes = await from.read({ start, end: start + blockSize, signal });
      const block = blockView(from.type, bytes, element - start, byteOrder, library.decode);
      return { row, column, value, block: { number: start / blockSize, ...block } };
    },
    async values({ model, tensor, row, column, rows, columns }, { signal }) {
      const from = tensorOf({ model, tensor });
      const { columnCount, rowCount } = matrixOf(from);
      const values: Float32Array[] = [];
      for (let r = row; r < Math.min(row + rows, rowCount); r++) {
        signal.throwIfAborted();
        const count = Math.max(0, Math.min(columns, columnCount - column));
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
      const { byteOrder } = models.get(model).model;
      return { blockCount, blockSize, first, scales: blockScales(type, blocks, byteOrder, library.decode) };
    },
    compare: ({ a, b }, { signal, onProgress }) => tensorOf(a).compare(tensorOf(b), { signal, onProgress }),
    async measure(all, { signal }) {
      const found: Found[] = [];
      for (const one of all) {
        try {
          found.push(
            "a" in one
              ? await tensorOf(one.a).compare(tensorOf(one.b), { signal })
              : await tensorOf(one).stats({ signal }),
          );
        } catch (error) {
          signal.throwIfAborted();
          found.push({ failure: sentenceOf(error) });
        }
      }
      return found;
    },
    async difference({ a, b, width, height }, work) {
      const [one, other] = [tensorOf(a), tensorOf(b)];
      const { signal } = work;
      return averaged(one, { width, height, breath }, work, async (start, end, out) => {
        const [values, others] = await Promise.all([
          one.dequantize({ start, end, out, signal }),
          other.dequantize({ start, end, signal }),
        ]);
        for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) - (others[i] as number);
        return values;
      });
    },
    differentKeys({ a, b }) {
      const [one, other] = [models.get(a), models.get(b)];
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
  const types = typeTotals(tensors);
  return {
    id,
    name: nameText(nameOf(source)),
    facts: summaryFacts(model),
    types: [...types],
    metadata: keys.map((key) => {
      const [type, text] = metadataText(metadata, key);
      return { key: nameText(key), type, text };
    }),
    tensors: tensorTable(tensors, [...types.keys()]),
    tokenCount: tokenCountOf(model),
    contextLength: countOf(metadata, `${architecture}.context_length`) ?? null,
  };
}

/** The name of the file: the last part of a URL without its query, which may hold a signature. */
function nameOf(source: ModelSource): string {
  if ("files" in source) return source.files[0]?.name ?? "";
  const path = source.url.replace(/[?#].*$/s, "");
  return decoded(path.slice(path.lastIndexOf("/") + 1));
}

function tokenCountOf({ metadata }: Model): number {
  const type = metadata.typeOf(TOKENS_KEY);
  return type?.type === "array" && type.elementType === "string" ? type.length : 0;
}

/** @throws GgufError for a vocabulary of a kind that is not known; Error for one that is too large */
function tokenizerOf(model: Model): Tokenizer {
  const count = tokenCountOf(model);
  if (count > MOST_TOKENS) throw new Error(`${grouped(count)} tokens are too many to find those of a text`);
  return new Tokenizer(model.metadata);
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

/** The part of a matrix that a region is of it; without a region all of it. */
function partOf(region: Region | undefined, columnCount: number, rowCount: number): Region {
  const { row, column, rows, columns } = region ?? {
    row: 0,
    column: 0,
    rows: rowCount,
    columns: columnCount,
  };
  return {
    row: Math.min(row, rowCount),
    column: Math.min(column, columnCount),
    rows: Math.max(0, Math.min(rows, rowCount - row)),
    columns: Math.max(0, Math.min(columns, columnCount - column)),
  };
}

/** The elements from `start` to `end` that are in a part of a matrix, row by row. */
function* rangesIn(
  { row, column, rows, columns }: Region,
  columnCount: number,
  start: number,
  end: number,
): Generator<[from: number, to: number], void, undefined> {
  if (columns === columnCount) {
    yield [Math.max(start, row * columnCount), Math.min(end, (row + rows) * columnCount)];
    return;
  }
  const lastRow = Math.min(row + rows, Math.ceil(end / columnCount));
  for (let r = Math.max(row, Math.floor(start / columnCount)); r < lastRow; r++) {
    const [from, to] = [r * columnCount + column, r * columnCount + column + columns];
    if (from < end && to > start) yield [Math.max(from, start), Math.min(to, end)];
  }
}

/** Memory for a piece, which the library writes to directly; undefined where there is none of that kind. */
function newPiece(): Float32Array | undefined {
  if (typeof SharedArrayBuffer === "undefined") return undefined;
  return new Float32Array(new SharedArrayBuffer(4 * PIECE));
}

/** Averages values down to a picture, which are read in their order. */
async function averaged(
  tensor: GgufModelTensor,
  {
    width,
    height,
    region,
    breath,
  }: { width: number; height: number; region?: Region | undefined; breath: () => Promise<void> },
  { signal, onProgress }: Work,
  read: (start: number, end: number, out: Float32Array | undefined) => Promise<Float32Array>,
): Promise<Picture> {
  const { columnCount, rowCount } = matrixOf(tensor);
  const { elementCount } = tensor;
  const part = partOf(region, columnCount, rowCount);
  const averages = new Averages(part.columns, part.rows, width, height);
  // What is between the first value and the last one is read, in whole blocks.
  const isEmpty = part.columns * part.rows === 0;
  const before = part.row * columnCount + part.column;
  const after = (part.row + part.rows - 1) * columnCount + part.column + part.columns;
  const first = isEmpty ? 0 : Math.floor(before / ALIGNMENT) * ALIGNMENT;
  const last = isEmpty ? 0 : Math.min(Math.ceil(after / ALIGNMENT) * ALIGNMENT, elementCount);
  // The next piece is read while this one is added up, where there is shared memory always into the same.
  const buffers = [0, 1].map(newPiece);
  const begin = (start: number): Promise<Float32Array> | undefined => {
    const end = Math.min(start + PIECE, last);
    const out = buffers[((start - first) / PIECE) % 2]?.subarray(0, end - start);
    const reading = start < end ? read(start, end, out) : undefined;
    reading?.catch(() => undefined);
    return reading;
  };
  let next = begin(first);
  for (let start = first; next !== undefined; start += PIECE) {
    const values = await next;
    const end = start + values.length;
    next = begin(start + PIECE);
    for (const [from, to] of rangesIn(part, columnCount, start, end)) {
      averages.add(values.subarray(from - start, to - start));
    }
    onProgress(end - first, last - first);
    await breath();
    signal.throwIfAborted();
  }
  return averages.picture();
}

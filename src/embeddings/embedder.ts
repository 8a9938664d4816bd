/** Vectors of texts: {@link Embedder}. */
import { whenAborted } from "../base/abortable";
import {
  checkAsync,
  checkBoolean,
  checkOptions,
  checkProgress,
  checkSignal,
  checkThreads,
  isUrl,
  type OptionNames,
} from "../base/arguments";
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import type { Dequantized } from "../base/options";
import { didYouMean } from "../base/suggest";
import type { GgufModel } from "../file/model";
import type { Item, Runner } from "./job";
import type { NetworkOptions } from "./network";
import { type EmbedderOptions, type EmbedOptions, POOLINGS, type ScoreOptions } from "./options";
import type { Place } from "./place";
import { startRunner } from "./start";

/** A vector in memory of its own. */
type Vector = Dequantized<"f32">;

const OPEN_OPTIONS: OptionNames<EmbedderOptions> = {
  ...{ activations: true, pooling: true, prepare: true, threads: true, signal: true },
};
const SCORE_OPTIONS: OptionNames<ScoreOptions> = { signal: true, onProgress: true };
const EMBED_OPTIONS: OptionNames<EmbedOptions> = {
  ...SCORE_OPTIONS,
  ...{ dimensions: true, normalize: true, prompt: true },
};

// Node before 20.5 lacks the symbol. Polyfills look it up under this name.
const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("nodejs.dispose") as typeof Symbol.dispose);

/** A call under way. */
interface Request {
  readonly items: readonly Item[];
  readonly vectors: Vector[];
  /** How many were handed to the runner, and how many are back. */
  next: number;
  done: number;
  isOver: boolean;
  readonly onProgress: EmbedOptions["onProgress"];
  readonly settle: (error?: unknown) => void;
}

/** Letters that are handed to the runner at a time: so many that this takes little, so few that an abort is soon noticed. */
const LETTERS = 2048;
/** Texts of these, at most. */
const TEXTS = 32;
/** While it works on one part, the next one is there. */
const IN_FLIGHT = 2;

/**
 * A model that makes vectors of texts, which are similar where meanings are; or numbers that say how well texts answer a query.
 * The architectures are bert (MiniLM, BGE, E5, GTE), nomic-bert, nomic-bert-moe, qwen3 (Qwen3-Embedding) and gemma-embedding
 * (EmbeddingGemma).
 *
 * ```js
 * const embedder = await Embedder.open("all-minilm-l6-v2-q8_0.gguf");
 * const [a, b] = await embedder.embed(["A cheetah chases prey.", "A predator runs after an animal."]);
 * ```
 *
 * A text has the same vector, to the bit, alone and among others, with any number of threads, on every machine. In Node.js the
 * model runs in a thread of its own, which maps the same file; elsewhere in steps on the calling one. Calls may be made while
 * others are under way: their texts take turns. An embedder that is not used does not keep the process from ending.
 */
export class Embedder implements Disposable {
  readonly #restart: () => Promise<Runner>;
  readonly #facts: Runner["facts"];
  /** One that has failed stays until another has started in its place. */
  #runner: Runner;
  #isStarting = false;
  /** Calls that have texts left, in the order of their turns, and all that are under way. */
  readonly #queue: Request[] = [];
  readonly #open = new Set<Request>();
  #inFlight = 0;
  #isClosed = false;

  private constructor(runner: Runner, restart: () => Promise<Runner>) {
    this.#runner = runner;
    this.#facts = runner.facts;
    this.#restart = restart;
  }

  /**
   * Opens a model. A GGUF file of this machine is mapped; one on a server, and a `Blob`, is brought to memory. In Node.js, a
   * checkpoint of safetensors is converted in memory.
   *
   * @param place a path, a URL, `hf://OWNER/NAME/FILE`, `ollama://NAME`, the folder of a checkpoint or `hf://OWNER/NAME`, a `Blob`,
   *   or an open model, which may be closed after that
   *   if it is a file
   * @throws TypeError for an argument of the wrong type
   * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for a model of another architecture, or without a vocabulary that
   *   `gguf-native/tokenizer` knows; ERR_GGUF_INVALID for one whose parts do not fit together; otherwise as `open`
   * @throws the reason of `options.signal` if it is aborted
   */
  static async open(place: string | URL | Blob | GgufModel, options?: EmbedderOptions): Promise<Embedder> {
    checkPlace(place);
    const given = checkOptions(options, OPEN_OPTIONS);
    const { activations = "int8", pooling } = given;
    if (activations !== "int8" && activations !== "f32")
      throw invalidArgValue("options.activations", "must be one of: 'int8', 'f32'", activations);
    if (pooling !== undefined && !POOLINGS.includes(pooling)) {
      const choices = POOLINGS.map((each) => `'${each}'`).join(", ");
      throw invalidArgValue("options.pooling", `must be one of: ${choices}`, pooling);
    }
    const prepare = given.prepare === undefined ? undefined : checkBoolean("options.prepare", given.prepare, false);
    const how: NetworkOptions = { activations, pooling, prepare, threads: checkThreads(given.threads) };
    const signal = checkSignal(given.signal);
    signal?.throwIfAborted();
    return new Embedder(await startRunner(place, how, signal), () => startRunner(place, how, undefined));
  }

  /** How many numbers a vector has. */
  get dimensions(): number {
    return this.#facts.dimensions;
  }

  /** The most tokens of a text: of a longer one, the beginning counts. */
  get maxTokens(): number {
    return this.#facts.maxTokens;
  }

  /** What the model's own files say that is to be put before texts, by names such as `"query"`; a GGUF file has none. */
  get prompts(): Readonly<Record<string, string>> {
    return this.#facts.prompts;
  }

  /** Whether it makes numbers of a query and texts: whether {@link score} can be called. */
  get hasScores(): boolean {
    return this.#facts.hasScores;
  }

  /** Whether {@link close} was called. */
  get closed(): boolean {
    return this.#isClosed;
  }

  /**
   * The vectors of texts, in their order.
   *
   * @returns for each text {@link dimensions} numbers, or `options.dimensions`
   * @throws TypeError for an argument of the wrong type, and for a prompt that the model does not name
   * @throws GgufError ERR_GGUF_RANGE for more dimensions than there are, and for a text without any token; ERR_GGUF_CLOSED;
   *   ERR_GGUF_UNSUPPORTED_TYPE for a model that only scores; ERR_GGUF_OUT_OF_MEMORY
   * @throws the reason of `options.signal` if it is aborted
   */
  async embed(texts: readonly string[], options?: EmbedOptions): Promise<Vector[]> {
    const given = checkOptions(options, EMBED_OPTIONS);
    const isNormalized = checkBoolean("options.normalize", given.normalize, true);
    const dimensions = this.#checkDimensions(given.dimensions);
    const prompt = this.#checkPrompt(given.prompt);
    if (!this.#facts.hasVectors)
      throw this.#unsupported("it makes no vectors, but numbers for a query and texts: call score()");
    const how = { query: undefined, isScored: false, dimensions, isNormalized };
    return this.#request(checkTexts(texts), given, (text) => ({ text: prompt + text, ...how }));
  }

  /**
   * How well each text answers a query, by a model with a head for that (a reranker): larger is better. They are what the
   * model gives, without a sigmoid.
   *
   * @returns a number for each text
   * @throws TypeError for an argument of the wrong type
   * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for a model without such a head; ERR_GGUF_CLOSED; ERR_GGUF_OUT_OF_MEMORY
   * @throws the reason of `options.signal` if it is aborted
   */
  async score(query: string, texts: readonly string[], options?: ScoreOptions): Promise<Vector> {
    if (typeof query !== "string") throw invalidArgType("query", "of type string", query);
    const given = checkOptions(options, SCORE_OPTIONS);
    if (!this.#facts.hasScores) throw this.#unsupported("it makes no scores: it has no tensor 'cls.output.weight'");
    const how = { query, isScored: true, dimensions: 1, isNormalized: false };
    const scores = await this.#request(checkTexts(texts), given, (text) => ({ text, ...how }));
    return Float32Array.from(scores, ([score]) => score as number);
  }

  /** Ends it. Calls under way reject with ERR_GGUF_CLOSED. May be called more than once. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#runner.close();
    for (const request of this.#open) request.settle(this.#closedError());
  }

  /** {@link close}, for `using`. */
  [dispose](): void {
    this.close();
  }

  async #request(texts: readonly string[], options: ScoreOptions, itemOf: (text: string) => Item): Promise<Vector[]> {
    const { signal, onProgress } = checkAsync(
      { signal: options.signal, onProgress: checkProgress(options.onProgress) },
      { path: this.#facts.path },
    );
    signal?.throwIfAborted();
    if (this.#isClosed) throw this.#closedError();
    if (texts.length === 0) return [];
    const items = texts.map(itemOf);
    const vectors: Vector[] = new Array(items.length);
    await new Promise<void>((resolve, reject) => {
      const settle = (error?: unknown): void => {
        request.isOver = true;
        this.#open.delete(request);
        forget();
        if (error === undefined) resolve();
        else reject(error);
      };
      const request: Request = { items, vectors, next: 0, done: 0, isOver: false, onProgress, settle };
      const forget = whenAborted(signal, () => settle(signal?.reason));
      this.#open.add(request);
      this.#queue.push(request);
      this.#send();
    });
    return vectors;
  }

  /** Hands texts to the runner, of all calls in turn. */
  #send(): void {
    while (this.#inFlight < IN_FLIGHT && !this.#isClosed) {
      const runner = this.#runner;
      if (runner.isOver) {
        void this.#start();
        return;
      }
      const places: [request: Request, index: number][] = [];
      for (let letters = 0; letters < LETTERS && places.length < TEXTS; ) {
        const request = this.#queue.shift();
        if (request === undefined) break;
        if (request.isOver) continue;
        const index = request.next++;
        places.push([request, index]);
        letters += request.items[index]?.text.length ?? 0;
        if (request.next < request.items.length) this.#queue.push(request);
      }
      if (places.length === 0) return;
      void this.#run(runner, places);
    }
  }

  async #run(runner: Runner, places: readonly [Request, number][]): Promise<void> {
    this.#inFlight++;
    try {
      const results = await runner.run(places.map(([{ items }, index]) => items[index] as Item));
      const touched = new Set<Request>();
      for (const [i, [request, index]] of places.entries()) {
        const result = results[i];
        if (result instanceof Error) request.settle(result);
        request.vectors[index] = result as Vector;
        request.done++;
        touched.add(request);
      }
      for (const request of touched) report(request);
    } catch (error) {
      for (const [request] of places) request.settle(error);
    } finally {
      this.#inFlight--;
      this.#send();
    }
  }

  /** Starts another runner in place of one that has failed. Where that fails, too, the next call tries again. */
  async #start(): Promise<void> {
    if (this.#isStarting) return;
    this.#isStarting = true;
    try {
      this.#runner = await this.#restart();
    } catch (error) {
      for (const request of this.#open) request.settle(error);
      return;
    } finally {
      this.#isStarting = false;
    }
    if (this.#isClosed) this.#runner.close();
    this.#send();
  }

  #checkDimensions(given: unknown): number {
    const { dimensions, path } = this.#facts;
    if (given === undefined) return dimensions;
    if (typeof given !== "number") throw invalidArgType("options.dimensions", "of type number", given);
    if (Number.isInteger(given) && given >= 1 && given <= dimensions) return given;
    const detail = `options.dimensions must be a whole number from 1 to ${dimensions}, found ${given}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, { path });
  }

  #checkPrompt(given: unknown): string {
    if (given === undefined) return "";
    if (typeof given !== "string") throw invalidArgType("options.prompt", "of type string", given);
    const { prompts } = this.#facts;
    if (Object.hasOwn(prompts, given)) return prompts[given] as string;
    const names = Object.keys(prompts);
    const known = names.length === 0 ? "none: write it into the texts" : names.join(", ");
    const reason = `must be a name that the model has for a prompt${didYouMean(given, names)}; it has ${known}`;
    throw invalidArgValue("options.prompt", reason, given);
  }

  #unsupported(detail: string): GgufError {
    return new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: this.#facts.path });
  }

  #closedError(): GgufError {
    return new GgufError("ERR_GGUF_CLOSED", "the embedder was closed", { path: this.#facts.path });
  }
}

/** Tells how far a call has come, and ends it where that was all. */
function report(request: Request): void {
  if (request.isOver) return;
  const { done, items, onProgress, settle } = request;
  try {
    onProgress?.(done, items.length);
    if (done === items.length) settle();
  } catch (error) {
    settle(error);
  }
}

function checkPlace(place: unknown): asserts place is Place {
  const isObject = typeof place === "object" && place !== null;
  if (typeof place === "string" || isUrl(place) || (isObject && ("arrayBuffer" in place || "tensors" in place))) return;
  throw invalidArgType("place", "of type string or an instance of URL, Blob or GgufModel", place);
}

/** A copy, which code of the caller that runs meanwhile does not change. */
function checkTexts(texts: unknown): string[] {
  if (!Array.isArray(texts)) throw invalidArgType("texts", "an array of strings", texts);
  const copy: unknown[] = Array.from(texts);
  const wrong = copy.findIndex((text) => typeof text !== "string");
  if (wrong >= 0) throw invalidArgType(`texts[${wrong}]`, "of type string", copy[wrong]);
  return copy as string[];
}

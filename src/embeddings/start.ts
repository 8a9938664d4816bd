/** Runs a model in a thread of its own, or in steps on the calling one where there can be none. */
import fs = require("node:fs");
import path = require("node:path");

import { Worker } from "node:worker_threads";
import { whenAborted } from "../base/abortable";
import { isBlob } from "../base/arguments";
import { GgufError } from "../base/errors";
import type { Answer, PostedError, WorkerData } from "./embedder-thread";
import type { Item, Result, Runner, StartRunner } from "./job";
import type { Place, PostedPlace } from "./place";

// So that tracers find the file. Beside a bundle, there may be others of more common names.
const WORKER = path.join(__dirname, "embedder-thread.js");

/** New objects of the thread are few. Memory for more of them, which V8 takes by itself, is an eighth of all that it has. */
const LIMITS = { maxYoungGenerationSizeMb: 6 };

export const startRunner: StartRunner<Place> = async (place, options, signal) => {
  const worker = start({ place: await posted(place, signal), options });
  if (worker !== undefined) return ThreadRunner.of(worker, signal);
  const { load } = await import("./load.js");
  const { InlineRunner } = await import("./inline.js");
  return new InlineRunner(await load(place, options, signal), options);
};

/** Undefined in a bundle, which has no file for it, and where Node's permission model allows no threads. */
function start(workerData: WorkerData): Worker | undefined {
  try {
    return fs.existsSync(WORKER) ? new Worker(WORKER, { workerData, resourceLimits: LIMITS }) : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_ACCESS_DENIED") return undefined;
    throw error;
  }
}

async function posted(place: Place, signal: AbortSignal | undefined): Promise<PostedPlace> {
  if (typeof place === "string") return place;
  if ("href" in place) return place.href;
  if (isBlob(place)) return place;
  const { postModel } = await import("./post-model.js"); // which brings the addon along
  return postModel(place, signal);
}

class ThreadRunner implements Runner {
  readonly facts: Runner["facts"];
  readonly #worker: Worker;
  readonly #waiting: { resolve: (results: Result[]) => void; reject: (reason: unknown) => void }[] = [];
  #end: unknown;

  private constructor(worker: Worker, facts: Runner["facts"]) {
    this.#worker = worker;
    this.facts = facts;
    worker.on("message", (answer: Answer) => this.#take(answer));
    worker.on("error", (error) => this.#fail(failureOf(error, facts.path)));
    worker.on("exit", () => this.#fail(ended(facts.path)));
    worker.unref();
  }

  /** Once the worker has said what model it has. */
  static of(worker: Worker, signal: AbortSignal | undefined): Promise<Runner> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        reject(signal?.reason);
        void worker.terminate();
      };
      const forget = whenAborted(signal, abort);
      if (signal?.aborted) abort();
      worker.on("error", (error) => reject(failureOf(error, undefined)));
      worker.once("exit", () => reject(ended(undefined)));
      worker.once("message", (answer: Answer) => {
        forget();
        if (answer.facts !== undefined) resolve(new ThreadRunner(worker, answer.facts));
        else reject(errorOf(answer.error as PostedError));
      });
    });
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  run(items: readonly Item[]): Promise<Result[]> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.ref();
      this.#worker.postMessage(items);
    });
  }

  #take({ results, error }: Answer): void {
    const first = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#worker.unref();
    if (results === undefined) first?.reject(errorOf(error as PostedError));
    else first?.resolve(results.map((result) => (result instanceof Float32Array ? result : errorOf(result))));
  }

  #fail(reason: unknown): void {
    this.#end ??= reason;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#end);
  }

  close(): void {
    this.#fail(new GgufError("ERR_GGUF_CLOSED", "the embedder was closed", { path: this.facts.path }));
    void this.#worker.terminate();
  }
}

function ended(path: string | undefined): GgufError {
  const detail = "the thread of the embedder has ended: the next call starts another one";
  return new GgufError("ERR_GGUF_CLOSED", detail, { path });
}

function failureOf(error: NodeJS.ErrnoException, path: string | undefined): unknown {
  if (error.code !== "ERR_WORKER_OUT_OF_MEMORY") return error;
  const detail = "the thread of the embedder has no memory left: the next call starts another one";
  return new GgufError("ERR_GGUF_OUT_OF_MEMORY", detail, { path, cause: error });
}

/** An error as it was in the worker: what is posted is only an Error with a message. */
function errorOf({ isGguf, name, message, properties, cause }: PostedError): Error {
  const options = cause && { cause: errorOf(cause) };
  const error = isGguf
    ? new GgufError(properties.code as GgufError["code"], message, options)
    : new (name === "TypeError" ? TypeError : name === "RangeError" ? RangeError : Error)(message, options);
  return Object.assign(error, properties);
}

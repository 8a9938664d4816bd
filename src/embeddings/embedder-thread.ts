/** The thread of an embedder: opens its model, and answers each message with the vectors of its texts, in their order. */
import { parentPort, workerData } from "node:worker_threads";
import { GgufError } from "../base/errors";
import { Engine } from "./engine";
import type { Facts, Item, Result } from "./job";
import { load } from "./load";
import type { NetworkOptions } from "./network";
import type { PostedPlace } from "./place";

export interface WorkerData {
  readonly place: PostedPlace;
  readonly options: NetworkOptions;
}

export interface PostedError {
  readonly isGguf: boolean;
  readonly name: string;
  readonly message: string;
  /** Its code, path and offset. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly cause: PostedError | undefined;
}

/** One of these: the first answer has facts, all others results. */
export interface Answer {
  readonly facts?: Facts;
  readonly results?: (Float32Array | PostedError)[];
  readonly error?: PostedError;
}

/** Tokens that are processed at a time: enough for two threads and more to share each step. */
const TOKENS = 256;

const port = parentPort;

function posted(error: unknown): PostedError {
  const { name, message, cause } = error as Error;
  const properties: Record<string, unknown> = {};
  for (const key of ["code", "path", "offset", "errno", "syscall"]) {
    const value = (error as Record<string, unknown>)[key];
    if (value !== undefined) properties[key] = value;
  }
  const inner = cause instanceof Error ? posted(cause) : undefined;
  return { isGguf: error instanceof GgufError, name, message, properties, cause: inner };
}

function answer(engine: Engine, items: readonly Item[]): void {
  try {
    const steps = engine.run(items, TOKENS);
    let step = steps.next();
    while (!step.done) step = steps.next();
    const isVector = (result: Result): result is Float32Array => result instanceof Float32Array;
    const buffers = step.value.filter(isVector).map(({ buffer }) => buffer as ArrayBuffer);
    const results = step.value.map((result) => (isVector(result) ? result : posted(result)));
    port?.postMessage({ results } satisfies Answer, buffers);
  } catch (error) {
    port?.postMessage({ error: posted(error) } satisfies Answer);
  }
}

async function main({ place, options }: WorkerData): Promise<void> {
  try {
    const { file, prompts, prepareAll } = await load(place, options);
    const engine = new Engine(file, options, prompts);
    port?.on("message", (items: Item[]) => answer(engine, items));
    // The first vectors are not kept waiting. Without memory for it, the next ones only take longer.
    port?.once("message", () => void prepareAll?.().catch(() => undefined));
    port?.postMessage({ facts: engine.facts } satisfies Answer);
  } catch (error) {
    port?.postMessage({ error: posted(error) } satisfies Answer);
  }
}

void main(workerData as WorkerData);

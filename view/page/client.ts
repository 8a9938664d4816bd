/** The side of the page: asks the worker, or the server. Leaving what a question was for cancels it. */

import program from "virtual:worker";
import { useEffect, useState } from "preact/hooks";
import {
  type CallName,
  type Calls,
  type FromWorker,
  type ModelSource,
  type ModelView,
  modelsIn,
  type ToWorker,
  withModels,
} from "../lib/protocol";
import { programUrl } from "../program-url";
import { askServer, type CallOptions, placeOnServer, server } from "./server";

interface Waiting extends CallOptions {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

const waiting = new Map<number, Waiting>();
let lastId = 0;
let worker: Worker | undefined;
// The server's page hardly ever needs it.
if (server === undefined) worker = startWorker();

function startWorker(): Worker {
  const started = new Worker(programUrl(program));
  started.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => {
    const call = waiting.get(data.id);
    if (call === undefined) return;
    if ("done" in data) {
      call.onProgress?.(data.done, data.total);
      return;
    }
    waiting.delete(data.id);
    if ("error" in data) call.reject(new Error(data.error));
    else call.resolve(data.result);
  });
  // The program itself does not run: no browser that is recent, or a policy that forbids it.
  started.addEventListener("error", (event) => {
    const error = new Error(`the worker does not run: ${event.message || "the browser does not say why"}`);
    for (const call of waiting.values()) call.reject(error);
    waiting.clear();
  });
  return started;
}

/** Asks the worker. Rejects with the signal's reason if that is aborted. */
function askWorker(call: CallName, argument: unknown, { signal, onProgress }: CallOptions): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const id = ++lastId;
    worker ??= startWorker();
    const asked = worker;
    const send = (message: ToWorker): void => asked.postMessage(message);
    signal?.addEventListener("abort", () => {
      if (!waiting.delete(id)) return;
      send({ id, cancel: true });
      reject(signal.reason as Error);
    });
    waiting.set(id, { onProgress, resolve, reject });
    send({ id, call, argument });
  });
}

/** The URLs of models that the server has open, and those of them that the worker had to open, too. */
const servedUrls = new Map<number, string>();
const twins = new Map<number, Promise<number>>();

const NOT_BESIDE =
  "A model of safetensors cannot be compared with a file that was chosen here: name both in the command, gguf-native view MODEL FILE";

/** The number of a model for the worker, which opens it if the server alone has it. */
async function numberInWorker(model: number): Promise<number> {
  const url = servedUrls.get(model);
  if (url === undefined) return model;
  const opening = async (): Promise<number> => {
    try {
      return ((await askWorker("open", { url }, {})) as ModelView).id;
    } catch (error) {
      // Of models of safetensors the server hands on no bytes.
      throw /\b404\b/.test(messageOf(error)) ? new Error(NOT_BESIDE) : error;
    }
  };
  const twin = twins.get(model) ?? opening();
  twins.set(model, twin);
  twin.catch(() => twins.delete(model));
  return twin;
}

/** Asks the server about its models, and the worker about all others, and about pairs of which only one is the server's. */
async function askAny(call: CallName, argument: unknown, options: CallOptions): Promise<unknown> {
  if (call === "open") {
    const source = argument as ModelSource;
    const place = placeOnServer(source);
    if (place === undefined || !("url" in source)) return askWorker(call, source, options);
    const view = (await askServer(call, { url: place }, options)) as ModelView;
    servedUrls.set(view.id, source.url);
    return view;
  }
  if (call === "render") return askWorker(call, argument, options);
  const models = modelsIn(argument);
  if (models.every((model) => servedUrls.has(model))) {
    const [model] = models;
    if (call === "close" && model !== undefined && twins.has(model)) {
      await askWorker(call, await numberInWorker(model), options);
      twins.delete(model);
    }
    return askServer(call, argument, options);
  }
  const numbers = new Map<number, number>();
  for (const model of models) numbers.set(model, await numberInWorker(model));
  const translated = withModels(argument, (model) => numbers.get(model) as number);
  return askWorker(call, translated, options);
}

/** Asks about models. Rejects with the signal's reason if that is aborted. */
export function ask<N extends CallName>(
  call: N,
  argument: Parameters<Calls[N]>[0],
  options: CallOptions = {},
): Promise<ReturnType<Calls[N]>> {
  return askAny(call, argument, options) as Promise<ReturnType<Calls[N]>>;
}

/** How far a question is. */
export type Answer<T> =
  | { readonly state: "busy"; readonly done: number; readonly total: number }
  | { readonly state: "done"; readonly result: T }
  | { readonly state: "failed"; readonly message: string };

/** How far a question is, is not shown more often than this. */
const PROGRESS_MS = 50;

const BUSY = { state: "busy", done: 0, total: 0 } as const;

/** The answer to a question, which is asked again when `key` changes, and cancelled when nothing shows it any more. */
export function useAnswer<T>(key: string, question: (options: CallOptions) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<{ key: string; answer: Answer<T> }>({ key, answer: BUSY });
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const set = (next: Answer<T>): void => {
      if (!signal.aborted) setAnswer({ key, answer: next });
    };
    set(BUSY);
    let shownAt = performance.now();
    const onProgress = (done: number, total: number): void => {
      if (performance.now() - shownAt < PROGRESS_MS) return;
      shownAt = performance.now();
      set({ state: "busy", done, total });
    };
    question({ signal, onProgress }).then(
      (result) => set({ state: "done", result }),
      (error: unknown) => set({ state: "failed", message: messageOf(error) }),
    );
    return () => controller.abort();
  }, [key]);
  return answer.key === key ? answer.answer : BUSY;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

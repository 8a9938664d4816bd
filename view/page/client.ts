/** The side of the page: asks the worker. Leaving what a question was for cancels it. */

import source from "virtual:worker";
import { useEffect, useState } from "preact/hooks";
import type { CallName, Calls, FromWorker, ToWorker } from "../lib/protocol";

/** Options of a question. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

interface Waiting extends CallOptions {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

const waiting = new Map<number, Waiting>();
let lastId = 0;
const worker = startWorker();

function startWorker(): Worker {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const started = new Worker(url);
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
export function ask<N extends CallName>(
  call: N,
  argument: Parameters<Calls[N]>[0],
  { signal, onProgress }: CallOptions = {},
): Promise<ReturnType<Calls[N]>> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const id = ++lastId;
    const send = (message: ToWorker): void => worker.postMessage(message);
    signal?.addEventListener("abort", () => {
      if (!waiting.delete(id)) return;
      send({ id, cancel: true });
      reject(signal.reason as Error);
    });
    waiting.set(id, { onProgress, resolve: resolve as (result: unknown) => void, reject });
    send({ id, call, argument });
  });
}

/** How far a question is. */
export type Answer<T> =
  | { readonly state: "busy"; readonly done: number; readonly total: number }
  | { readonly state: "done"; readonly result: T }
  | { readonly state: "failed"; readonly message: string };

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
    question({ signal, onProgress: (done, total) => set({ state: "busy", done, total }) }).then(
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

/** The worker of the page, in this process. */
import { dequantizeSync, type GgmlType, parse } from "gguf-native";
import type { Calls, FromWorker, ToWorker } from "../../view/lib/protocol";
import { serve } from "../../view/lib/session";

export const decode = (type: GgmlType, blocks: Uint8Array) => dequantizeSync(type, blocks);

/** The models are those of `files`, by their URL. */
export function viewSession(files: Record<string, Uint8Array>) {
  const waiting = new Map<number, (message: FromWorker) => void>();
  const send = serve(
    {
      open: async (source, { partial }) => {
        const url = "url" in source ? source.url : "";
        const bytes = files[url];
        if (bytes === undefined) throw new Error(`no file ${url}`);
        return parse(bytes, { partial });
      },
      decode,
      render: async (task) => JSON.stringify(task),
      breath: () => new Promise(setImmediate),
    },
    (message) => waiting.get(message.id)?.(message),
  );
  let lastId = 0;
  const begin = <N extends keyof Calls>(call: N, argument: Parameters<Calls[N]>[0]) => {
    const id = ++lastId;
    const progress: [done: number, total: number][] = [];
    const result = new Promise<ReturnType<Calls[N]>>((resolve, reject) => {
      waiting.set(id, (message) => {
        if ("done" in message) progress.push([message.done, message.total]);
        else if ("error" in message) reject(new Error(message.error));
        else resolve(message.result as ReturnType<Calls[N]>);
      });
      send({ id, call, argument } satisfies ToWorker);
    });
    return { result, progress, cancel: () => send({ id, cancel: true }) };
  };
  const ask = <N extends keyof Calls>(call: N, argument: Parameters<Calls[N]>[0]) => begin(call, argument).result;
  return { ask, begin };
}

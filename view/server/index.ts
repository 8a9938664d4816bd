/** The session as `gguf-native view` runs it: with the native library, for pages that ask over HTTP. */
import { dequantizeSync } from "gguf-native";
import { nextTurn } from "#dist/base/event-loop";
import type { StartSession } from "#dist/view-server/server";
import { FIRST_SERVED } from "../lib/protocol";
import { type Library, type Model, serve } from "../lib/session";
import { encodeMessage } from "../lib/wire";
import { questionOf } from "./requests";

export const startSession: StartSession = (find) => {
  const checks = new Map<Model, () => Promise<void>>();
  const library: Library = {
    async open(source, { partial }) {
      const opened = await find("url" in source ? source.url : "")?.open(partial);
      if (opened === undefined) throw new Error("the server has no such model");
      for (const model of checks.keys()) if (model.closed) checks.delete(model);
      checks.set(opened.model, opened.check);
      return opened.model;
    },
    check: async (model) => checks.get(model)?.(),
    decode: (type, blocks) => dequantizeSync(type, blocks),
    render: () => Promise.reject(new Error("a template runs in the page alone")),
    breath: nextTurn,
  };
  const asking = new Map<number, (bytes: Uint8Array, isLast: boolean) => void>();
  let lastId = 0;
  const session = serve(
    library,
    (message) => asking.get(message.id)?.(encodeMessage(message), !("done" in message)),
    FIRST_SERVED,
  );
  return {
    ask(text, send) {
      const question = questionOf(text);
      if (question === undefined) return undefined;
      const id = ++lastId;
      asking.set(id, send);
      session({ id, ...question });
      return () => {
        asking.delete(id);
        session({ id, cancel: true });
      };
    },
    close() {
      for (const model of checks.keys()) model.close();
    },
  };
};

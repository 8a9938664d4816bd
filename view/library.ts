/** The library in the worker, as the session uses it. */
import { dequantizeSync, openBlob, openRemote } from "gguf-native/wasm";
import type { Library } from "./lib/session";

export const library: Library = {
  open: (source, options) =>
    "url" in source ? openRemote(source.url, options) : openBlob(source.files, options),
  decode: (type, blocks) => dequantizeSync(type, blocks),
  // Not a timer: browsers make these wait longer and longer.
  breath: () =>
    new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    }),
};

/** The library in the worker, as the session uses it. */
import { dequantizeSync, openBlob, openRemote } from "gguf-native/wasm";
import type { Library } from "./lib/session";

export const library: Library = {
  open: (source, options) =>
    "url" in source ? openRemote(source.url, options) : openBlob(source.files, options),
  decode: (type, blocks) => dequantizeSync(type, blocks),
};

/** `gguf-native/embeddings` where there is no addon: it shares the files of `gguf-native/wasm`. */
import "./embedded.js";

export * from "../embeddings/public.js";

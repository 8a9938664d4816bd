/** `gguf-native/embeddings` where there is no addon. scripts/build/bundle-wasm.mjs writes it: a part of the bundle beside it. */
export * from "../embeddings/public.js";

import "./embedded.js";

/** What the files of `gguf-native/embeddings` and `gguf-native/network` take out of this one. @internal */
export * as embeddings from "../embeddings/public.js";
/** @internal */
export * as network from "../network/public.js";
export * from "./public.js";

/**
 * `gguf-native/embeddings`: vectors of texts, for search, grouping and classification, and the scores of rerankers.
 */
export { GgufError, type GgufErrorCode } from "../base/errors";
export { Embedder } from "./embedder";
export type { EmbedderOptions, EmbedOptions, Pooling, ScoreOptions } from "./options";

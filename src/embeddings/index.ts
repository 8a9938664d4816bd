/**
 * `gguf-native/embeddings` in Node.js: vectors of texts, for search, grouping and classification, and the scores of rerankers.
 *
 * @module gguf-native/embeddings
 */
import "../backend/bundled"; // before all else

export * from "./public";

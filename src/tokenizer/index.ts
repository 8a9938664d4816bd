/**
 * `gguf-native/tokenizer`: text to tokens and back, with the vocabulary of a model, in Node.js and browsers.
 *
 * @module gguf-native/tokenizer
 */
export type { Normalization } from "./encoding";
export { type DecodeOptions, type EncodeOptions, Tokenizer, type TokenizerOptions } from "./tokenizer";
export { wordRuleNames } from "./word-rules";

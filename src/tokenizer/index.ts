/**
 * The tokenizers that the command line and the examples use. Inside this project their name is `#tokenizer`; they are not
 * part of the package's interface.
 */
export { wordRule, words } from "./byte-level";
export { mergePairs } from "./encoding";
export { Tokenizer } from "./tokenizer";

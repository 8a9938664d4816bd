/**
 * `gguf-native/wasm`: the weights of a GGUF model in browsers, and wherever else there is no addon. The kernels are those of
 * `gguf-native`, compiled to WebAssembly, with the same results to the bit; classes, options and errors are the same. Bytes
 * come from memory ({@link parse}), from a `Blob` ({@link openBlob}) or from a server ({@link openRemote}).
 *
 * `gguf-native` itself is this module in bundles for browsers.
 *
 * @module gguf-native/wasm
 */

export { type BlobOptions, openBlob } from "../file/blob-file";
export { open } from "../open.browser";
export * from "../portable";
export { openSafetensors } from "../safetensors/open-place";
export { useModule } from "./use-module";
export { useThreads } from "./use-threads";

/** `gguf-native/network` where there is no addon: it shares the files of `gguf-native/wasm`. */
import "./imported.js";

export * from "../network/public.js";

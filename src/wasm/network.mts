/** `gguf-native/network` where there is no addon: it shares the files of `gguf-native/wasm`. */
import "./embedded.js";

export * from "../network/public.js";

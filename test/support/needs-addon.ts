/** Tests that are about the addon: mapped files, threads, memory pools, instruction sets. */
import { cpu } from "gguf-native";

/** Whether the WebAssembly module takes the place of the addon, as with GGUF_NATIVE_WASM=1. */
export const isWasm = cpu().isa === "wasm";

/** Options of `test()` and `describe()`: skips where there is no addon. */
export const needsAddon = { skip: isWasm && "needs the addon" };

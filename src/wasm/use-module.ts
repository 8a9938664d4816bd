import { type CompiledModule, WebAssembly } from "../backend/wasm/globals";
import { setModule } from "../backend/wasm/module";
import { setThreading } from "../backend/wasm/threads";
import { invalidArgType, invalidArgValue } from "../base/errors";

/**
 * Takes the compiled kernels, for runtimes that compile no WebAssembly while they run, such as Cloudflare Workers. Call it before
 * other functions; what they have is kept.
 *
 * @param module the `WebAssembly.Module` of `gguf-native/kernels.wasm`, of this version of the package
 * @throws TypeError ERR_INVALID_ARG_TYPE if it is no `WebAssembly.Module`; ERR_INVALID_ARG_VALUE if it is one of something else
 */
export function useModule(module: object): void {
  // By its tag: it may be of another realm.
  if (Object.prototype.toString.call(module) !== "[object WebAssembly.Module]") {
    throw invalidArgType("module", "an instance of WebAssembly.Module", module);
  }
  const names = new Set(WebAssembly.Module.exports(module as CompiledModule).map(({ name }) => name));
  if (!names.has("set_hash_keys")) {
    throw invalidArgValue("module", "must be the module of gguf-native/kernels.wasm", module);
  }
  setModule(() => module);
  setThreading(undefined);
}

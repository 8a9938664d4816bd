/** The WebAssembly module, if it is built. */
import { existsSync, readFileSync } from "node:fs";
import { setModule } from "#dist/backend/wasm/module";
import { modulePath } from "./paths";

/** What is used of the global object, whose types come with those of browsers. */
interface WithModules {
  WebAssembly: {
    Module: { new (bytes: Uint8Array): object; imports(module: object): unknown[] };
  };
}
export const { Module } = (globalThis as unknown as WithModules).WebAssembly;

/** Options for `describe()`: skips, with a reason, where the module is not built. */
export const needsModule = {
  skip: !existsSync(modulePath) && "dist/wasm/kernels.wasm is not there: npm run build:wasm makes it",
};

/** The module, in use by `backend/wasm`; undefined where it is not built. */
export const compiledModule = needsModule.skip ? undefined : new Module(readFileSync(modulePath));
if (compiledModule !== undefined) setModule(() => compiledModule);

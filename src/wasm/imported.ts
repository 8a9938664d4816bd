/** The module as Cloudflare Workers have it, which compile none while they run: it is imported, compiled. */
// @ts-expect-error: TypeScript knows no imports of such files
import module from "./kernels.wasm";
import { useModule } from "./use-module";

useModule(module);

// biome-ignore lint/complexity/noUselessEmptyExport: without one, esbuild takes it for CommonJS
export {};

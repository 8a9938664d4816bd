/** The entry for Cloudflare Workers, which compile no module while they run: theirs is imported, compiled. */
// @ts-expect-error: TypeScript knows no imports of such files
import module from "./kernels.wasm";
import { useModule } from "./public.js";

useModule(module);

export * from "./public.js";

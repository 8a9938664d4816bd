/** The module as it is in the bundles of this folder: part of the script, so that nothing else has to be fetched. */
import { inflateSync } from "fflate";
import { compileModule, setModule } from "../backend/wasm/module";
import { relaxedTiles } from "../backend/wasm/relaxed";

/** What `scripts/build/bundle-wasm.mjs` puts in place of this name: JSON of the deflated modules in base64, and their sizes. */
declare const KERNELS: string;

type Embedded = readonly [deflated: string, byteLength: number];

function inflated([deflated, byteLength]: Embedded): Uint8Array {
  const bytes = Uint8Array.from(atob(deflated), (character) => character.charCodeAt(0));
  return inflateSync(bytes, { out: new Uint8Array(byteLength) });
}

const [kernels, relaxed] = JSON.parse(KERNELS) as [kernels: Embedded, relaxed: Embedded];

setModule(
  () => compileModule(inflated(kernels)),
  relaxedTiles(() => inflated(relaxed)),
);

// biome-ignore lint/complexity/noUselessEmptyExport: without one, esbuild takes it for CommonJS
export {};

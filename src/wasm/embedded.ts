/** The module as it is in the bundles of this folder: part of the script, so that nothing else has to be fetched. */
import { inflateSync } from "fflate";
import { compileModule, setModule } from "../backend/wasm/module";
import { relaxedTiles } from "../backend/wasm/relaxed";

/** What `scripts/build/bundle-wasm.mjs` puts in place of this name: the deflated modules in base64, and their sizes. */
declare const KERNELS: readonly [kernels: Embedded, relaxed: Embedded];

type Embedded = readonly [deflated: string, byteLength: number];

function inflated([deflated, byteLength]: Embedded): Uint8Array {
  const bytes = Uint8Array.from(atob(deflated), (character) => character.charCodeAt(0));
  return inflateSync(bytes, { out: new Uint8Array(byteLength) });
}

setModule(
  () => compileModule(inflated(KERNELS[0])),
  relaxedTiles(() => inflated(KERNELS[1])),
);

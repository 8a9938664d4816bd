/** The module as it is in the bundles of this folder: part of the script, so that nothing else has to be fetched. */
import { inflateSync } from "fflate";
import { compileModule, setModule } from "../backend/wasm/module";

/** What `scripts/build/bundle-wasm.mjs` puts in place of this name: the deflated module in base64, and its size. */
declare const KERNELS: readonly [deflated: string, byteLength: number];

const [deflated, byteLength] = KERNELS;

setModule(() => {
  const bytes = Uint8Array.from(atob(deflated), (character) => character.charCodeAt(0));
  return compileModule(inflateSync(bytes, { out: new Uint8Array(byteLength) }));
});

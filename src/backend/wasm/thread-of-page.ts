/** A worker of a page that helps. `scripts/build/bundle-wasm.mjs` makes it a text in the bundles. */
import { type HelperData, help } from "./thread";

const scope = globalThis as unknown as {
  onmessage: (event: { data: HelperData }) => void;
  postMessage(message: undefined): void;
};
scope.onmessage = ({ data }) => help(data, () => scope.postMessage(undefined));

// biome-ignore lint/complexity/noUselessEmptyExport: without one, esbuild takes it for CommonJS
export {};

/** The module as it is in the bundles of this folder: part of the script, so that nothing else has to be fetched. */
import { inflateSync } from "fflate";
import { compileModule, setModule } from "../backend/wasm/module";
import { relaxedTiles } from "../backend/wasm/relaxed";
import type { HelperData } from "../backend/wasm/thread";
import { setThreading } from "../backend/wasm/threads";

/** What `scripts/build/bundle-wasm.mjs` puts in place of this name: JSON of the deflated modules in base64, and their sizes. */
declare const KERNELS: string;
/** And of this: the program of `thread-of-page.ts`. */
declare const THREAD: string;

/** What is used of a page, or of its worker, whose types come with those of browsers. */
const page = globalThis as unknown as {
  readonly crossOriginIsolated?: boolean;
  readonly navigator: { readonly hardwareConcurrency: number };
  readonly Worker: new (
    url: string,
  ) => Record<"onmessage" | "onerror", unknown> & {
    postMessage(data: HelperData): void;
    terminate(): void;
  };
};
let program: string | undefined;

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

if (page.crossOriginIsolated === true) {
  setThreading({
    bytes: () => inflated(kernels),
    processors: () => page.navigator.hardwareConcurrency,
    start: (data) => {
      program ??= URL.createObjectURL(new Blob([THREAD], { type: "text/javascript" }));
      const worker = new page.Worker(program);
      worker.postMessage(data);
      const settled = new Promise((resolve) => Object.assign(worker, { onmessage: resolve, onerror: resolve }));
      return { settled, end: () => worker.terminate() };
    },
  });
}

// biome-ignore lint/complexity/noUselessEmptyExport: without one, esbuild takes it for CommonJS
export {};

/** The page that measures the WebAssembly module in a browser. */
import type { GgmlType } from "gguf-native/reference";
import { setModule } from "#dist/backend/wasm/module";
import type { Patience } from "./measure";
import { raceModule, type TypeTimings } from "./wasm-race";

export interface PageInput {
  /** The bytes of the module, in base64. */
  module: string;
  types: GgmlType[];
  patience: Patience;
}

export type PageResult = Record<string, TypeTimings>;

interface Page {
  WebAssembly: { compile(bytes: Uint8Array): Promise<object> };
  fetch(url: string, options?: { method: "POST"; body: string }): Promise<{ json(): Promise<unknown> }>;
}
const { WebAssembly, fetch } = globalThis as unknown as Page;

async function main(): Promise<void> {
  const { module, types, patience } = (await (await fetch("/input")).json()) as PageInput;
  const compiled = await WebAssembly.compile(Uint8Array.from(atob(module), (char) => char.charCodeAt(0)));
  setModule(() => compiled);
  const result: PageResult = {};
  for (const type of types) result[type] = await raceModule(type, patience);
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
}

void main();

/** What test/reference/browser.test.ts runs in a browser: `gguf-native/reference` on the cases that it is handed. */
import { type DType, dequantizeSync, type GgmlType, ggmlTypes, matmulSync } from "gguf-native/reference";
import { firstDifference } from "./compare";

/** A type's blocks with what is expected of them; all arrays are base64. */
export interface PageCase {
  name: string;
  type: GgmlType;
  blocks: string;
  numbers: Record<DType, string>;
  columns: number;
  x: string;
  product: string;
}

export interface PageResult {
  /** Names of Node's globals that the page has. */
  globals: string[];
  types: string[];
  /** For each case the first differences, -1 where there is none. */
  differences: Record<string, Record<DType | "product", number>>;
  /** Code and name of the error for a type that does not exist. */
  error: { name: string; code: string; message: string };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

const floatsOf = (base64: string) => new Float32Array(bytesOf(base64).buffer);
const bitsOf = (base64: string) => new Uint16Array(bytesOf(base64).buffer);

function differences({ type, blocks, numbers, columns, x, product }: PageCase) {
  const bytes = bytesOf(blocks);
  return {
    f32: firstDifference(dequantizeSync(type, bytes), floatsOf(numbers.f32)),
    f16: firstDifference(dequantizeSync(type, bytes, { dtype: "f16" }), bitsOf(numbers.f16), "f16"),
    bf16: firstDifference(dequantizeSync(type, bytes, { dtype: "bf16" }), bitsOf(numbers.bf16), "bf16"),
    product: firstDifference(matmulSync(type, bytes, columns, floatsOf(x)), floatsOf(product)),
  };
}

function errorOf(run: () => unknown): PageResult["error"] {
  try {
    run();
  } catch (error) {
    const { name, code, message } = error as Error & { code: string };
    return { name, code, message };
  }
  throw new Error("there was no error");
}

async function main() {
  const cases = (await (await fetch("/input")).json()) as PageCase[];
  const result: PageResult = {
    globals: ["process", "Buffer", "require", "global"].filter((name) => name in globalThis),
    types: Object.keys(ggmlTypes),
    differences: Object.fromEntries(cases.map((each) => [each.name, differences(each)])),
    error: errorOf(() => dequantizeSync("Q9_0" as GgmlType, new Uint8Array())),
  };
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
}

main();

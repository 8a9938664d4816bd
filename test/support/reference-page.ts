/** What test/reference/browser.test.ts runs in a browser, and in Node: `gguf-native/reference` on blocks of every type. */
import { dequantizeSync, type GgmlType, ggmlTypes, matmulSync } from "gguf-native/reference";
import { gaussianBlocks } from "./blocks";
import { Random } from "./random";

export interface PageResult {
  /** Names of Node's globals that the page has. */
  globals: string[];
  facts: ReturnType<typeof factsOf>;
  /** Of a type that does not exist. */
  error: { name: string; code: string; message: string };
}

const COLUMNS = 512;

/** Rounds in the same way everywhere: no logarithms, no cosines. */
class PlainRandom extends Random {
  override gaussian(): number {
    return this.unit() - 0.5;
  }
}

/** For each type, a number for the bits of its numbers in every output type, and of products. */
export function factsOf(): Record<string, number[]> {
  const random = new PlainRandom(77);
  const checksum = ({ buffer, byteOffset, byteLength }: ArrayBufferView): number =>
    new Uint16Array(buffer, byteOffset, byteLength / 2).reduce((sum, word) => Math.imul(sum ^ word, 16777619), 1);
  const types = Object.entries(ggmlTypes) as [GgmlType, { blockSize: number }][];
  return Object.fromEntries(
    types.map(([type, { blockSize }]) => {
      const blocks = gaussianBlocks(type, 2048 / blockSize, random);
      const x = Float32Array.from({ length: 3 * COLUMNS }, () => random.gaussian());
      const numbers = (["f32", "f16", "bf16"] as const).map((dtype) => dequantizeSync(type, blocks, { dtype }));
      return [type, [...numbers, matmulSync(type, blocks, COLUMNS, x)].map(checksum)];
    }),
  );
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
  const result: PageResult = {
    globals: ["process", "Buffer", "require", "global"].filter((name) => name in globalThis),
    facts: factsOf(),
    error: errorOf(() => dequantizeSync("Q9_0" as GgmlType, new Uint8Array())),
  };
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
}

if ("document" in globalThis) main();

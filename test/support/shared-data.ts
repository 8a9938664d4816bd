/** Real model files that are not part of the project. Tests that need them are skipped without them, and say so. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./paths";

const candidates = [process.env.GGUF_NATIVE_SHARED_DATA, join(projectRoot, "..", "shared", "data")];

/** The folder of shared data, or undefined if there is none. */
export const sharedData: string | undefined = candidates.find((folder) => folder && existsSync(folder));

/** Options for `test()`: skips, with a reason, if `file` is not in the shared data. */
export function needsShared(file: string): { skip: string | false } {
  if (sharedData === undefined) return { skip: `no shared data (set GGUF_NATIVE_SHARED_DATA) for ${file}` };
  return { skip: existsSync(join(sharedData, file)) ? false : `${file} is not in ${sharedData}` };
}

export function sharedPath(file: string): string {
  return join(sharedData ?? "", file);
}

export const vocabularies = ["bert-bge", "deepseek-llm", "gpt-2", "llama-spm", "phi-3"].map(
  (name) => `ggml-vocab-${name}.gguf`,
);
export const tinyLlama = "tiny-llama-q4_k_m.gguf";

/** Paths of files and folders. The compiled benchmarks are in build/bench/. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const projectRoot = join(__dirname, "..", "..");
export const benchFolder = join(projectRoot, "bench");
export const buildFolder = join(projectRoot, "build", "bench");

/** The vocabulary of a real model, which is not part of the project; undefined if it is not there. */
export function realVocabulary(): string | undefined {
  const folders = [process.env.GGUF_NATIVE_SHARED_DATA, join(projectRoot, "..", "shared", "data")];
  return folders
    .filter((folder) => folder !== undefined)
    .map((folder) => join(folder, "ggml-vocab-deepseek-llm.gguf"))
    .find((path) => existsSync(path));
}

let folder: string | undefined;

/** The path of a temporary file. The file is removed when the process ends. */
export function temporaryFile(name: string): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), "gguf-native-bench-"));
    process.once("exit", () => rmSync(made, { recursive: true, force: true }));
    folder = made;
  }
  return join(folder, name);
}

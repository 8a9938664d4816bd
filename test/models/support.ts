/** The models of `npm run models`, and gguf-py. `npm run test:models` says in its environment where they are. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { GgufWriter, openSync } from "gguf-native";
import { runSync } from "../support/child";
import { projectRoot } from "../support/paths";

const folder = process.env.GGUF_NATIVE_MODELS ?? "";

export const SMOLLM2 = "smollm2-135m-instruct-q4_1.gguf";
export const GEMMA3 = "gemma-3-270m-q4_k_m.gguf";
/** Not a GGUF file, but a checkpoint, with its configuration and vocabulary beside it. */
export const MINILM = "all-MiniLM-L6-v2/model.safetensors";

export const modelPath = (file: string): string => join(folder, file);

/** Options of a test: skips it, and says why, where a model is not there. */
export function needsModel(file: string): { skip: string | false } {
  return { skip: existsSync(modelPath(file)) ? false : `${file} is not in ${folder}: npm run models` };
}

export interface PythonModel {
  metadata: [key: string, types: string[], value: unknown][];
  tensors: {
    name: string;
    type: string;
    shape: number[];
    offset: number;
    /** If values are wanted: SHA-256 of the bytes, and of the dequantized float32s. */
    bytes?: string;
    values?: string;
  }[];
}

/** What gguf-py finds in a file; or why it cannot be asked. */
export function readWithPython(path: string, { values = false } = {}): PythonModel | string {
  const script = join(projectRoot, "test", "models", "gguf_py.py");
  const python = process.platform === "win32" ? "python" : "python3";
  const args = [script, path, ...(values ? ["--values"] : [])];
  const { status, stdout, stderr, error } = runSync(python, args, { limit: 600_000 });
  if (error) return `${python} was not found`;
  if (stderr.includes("ModuleNotFoundError")) return "gguf-py is not installed: npm run models";
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as PythonModel;
}

/** Writes a model with the same weights as F32 to a folder. */
export async function widened(folder: string, model: string): Promise<string> {
  using file = openSync(modelPath(model));
  const writer = GgufWriter.from(file);
  for (const tensor of file.tensors.values()) {
    writer.addTensor(tensor.name, "F32", [...tensor.shape], tensor.dequantizeSync());
  }
  const path = join(folder, model);
  await writer.write(path);
  return path;
}

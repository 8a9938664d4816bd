/** LoRA adapters as PEFT saves them, with random weights. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "./random";
import { safetensorsOf } from "./safetensors-files";

const random = new Random(31);

export type Tensors = Record<string, { dtype: string; shape: readonly number[]; bytes: Uint8Array }>;

export function matrix(name: string, ...shape: number[]): Tensors {
  const length = (shape[0] ?? 1) * (shape[1] ?? 1);
  const numbers = Float32Array.from({ length }, () => random.gaussian());
  return { [name]: { dtype: "F32", shape, bytes: new Uint8Array(numbers.buffer) } };
}

/** Writes an adapter into a folder; returns that. */
export function writeAdapter(path: string, tensors: Tensors, config: object | string): string {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "adapter_model.safetensors"), safetensorsOf(tensors));
  writeFileSync(join(path, "adapter_config.json"), typeof config === "string" ? config : JSON.stringify(config));
  return path;
}

/** Which tensors the arguments of a command name. */
import { GgufError } from "../../base/errors";
import { ggmlTypes } from "../../base/types";
import type { GgufModel, GgufModelTensor } from "../../index";
import { globMatcher, isGlob } from "./glob";

/**
 * The tensors that any of `patterns` names, in file order; all where there are no patterns. A pattern is the name of a
 * tensor or else a glob, and must name at least one. Those that a glob of `exclude` matches are left out.
 * @param path the model's, for errors
 * @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND
 */
export function selectTensors<T extends GgufModelTensor>(
  file: GgufModel<T>,
  path: string,
  patterns: readonly string[] | undefined,
  exclude: readonly string[] = [],
): T[] {
  const names = new Set(patterns === undefined ? file.tensors.keys() : []);
  for (const pattern of patterns ?? []) {
    const found =
      file.tensors.has(pattern) || !isGlob(pattern) ? [file.tensor(pattern).name] : matching(pattern);
    if (found.length === 0) throw notFound(path, `no tensor's name matches '${pattern}'`);
    for (const name of found) names.add(name);
  }
  const excluded = exclude.map(globMatcher);
  const selected = Array.from(file.tensors.values()).filter(
    ({ name }) => names.has(name) && !excluded.some((matches) => matches(name)),
  );
  if (selected.length === 0) throw notFound(path, "no tensors are left");
  return selected;

  function matching(pattern: string): string[] {
    return Array.from(file.tensors.keys()).filter(globMatcher(pattern));
  }
}

function notFound(path: string, detail: string): GgufError {
  return new GgufError("ERR_GGUF_TENSOR_NOT_FOUND", `${detail}; 'gguf-native inspect --tensors' lists them`, {
    path,
  });
}

/** Whether a tensor's type is one that can be turned into numbers. */
export function canDequantize({ type }: GgufModelTensor): boolean {
  return Object.hasOwn(ggmlTypes, type);
}

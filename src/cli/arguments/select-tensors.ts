/** Which tensors the arguments of a command name. */
import { GgufError } from "../../base/errors";
import { globMatcher, isGlob } from "../../base/glob";
import { ggmlTypes } from "../../base/types";
import type { GgufModel, GgufModelTensor } from "../../index";

/**
 * The tensors that any of `patterns` names, in file order; all where there are no patterns. A pattern is the name of a
 * tensor or else a glob, and must name at least one. Those that a glob of `exclude` matches are left out.
 * @param path the model's, for errors
 * @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND; ERR_GGUF_RANGE where they are too many
 */
export function selectTensors<T extends GgufModelTensor>(
  file: GgufModel<T>,
  path: string,
  patterns: readonly string[] | undefined,
  exclude: readonly string[] = [],
): T[] {
  const names = new Set<string>();
  const globs = new Map<string, (name: string) => boolean>();
  for (const pattern of patterns ?? []) {
    if (file.tensors.has(pattern) || !isGlob(pattern)) names.add(file.tensor(pattern).name);
    else globs.set(pattern, globMatcher(pattern));
  }
  const unmatched = new Set(globs.keys());
  const excluded = exclude.map(globMatcher);
  const isWanted = ({ name }: T): boolean => {
    let isNamed = patterns === undefined || names.has(name);
    for (const [pattern, matches] of globs) {
      if (!matches(name)) continue;
      unmatched.delete(pattern);
      isNamed = true;
    }
    return isNamed && !excluded.some((matches) => matches(name));
  };
  const selected = tensorsWhere(file, path, isWanted);
  const [pattern] = unmatched;
  if (pattern !== undefined) throw notFound(path, `no tensor's name matches '${pattern}'`);
  if (selected.length === 0) throw notFound(path, "no tensors are left");
  return selected;
}

/** The most tensors that a command works on together: there are objects for each. */
const MOST_SELECTED = 2 ** 20;

/**
 * The tensors that `isWanted` accepts, in file order.
 * @param path the model's, for errors
 * @throws GgufError ERR_GGUF_RANGE where they are too many
 */
export function tensorsWhere<T extends GgufModelTensor>(
  file: GgufModel<T>,
  path: string,
  isWanted: (tensor: T) => boolean,
): T[] {
  const found: T[] = [];
  for (const tensor of file.tensors.values()) {
    if (!isWanted(tensor)) continue;
    if (found.length === MOST_SELECTED) {
      const detail = `these are more than ${MOST_SELECTED} tensors: name fewer of them`;
      throw new GgufError("ERR_GGUF_RANGE", detail, { path });
    }
    found.push(tensor);
  }
  return found;
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

/** Opens what an embedder runs, wherever it is. */

import { isBlob } from "../base/arguments";
import type { GgufModel } from "../file/model";
import { checkPath, openPath } from "../file/open";
import { GgufFile, parse } from "../file/parse";
import type { GgufTensor } from "../file/tensor";
import { open } from "../open";
import { isSafetensors } from "../safetensors/is-safetensors";
import { schemeOf } from "../source/url";
import type { NetworkOptions } from "./network";
import type { Loaded, Place, PostedPlace } from "./place";

/**
 * What is seldom needed is loaded then: a file of this machine is there at once.
 * @throws as the functions that open
 */
export async function load(
  place: Place | PostedPlace,
  { activations, threads, prepare }: Pick<NetworkOptions, "activations" | "threads" | "prepare">,
  signal?: AbortSignal,
): Promise<Loaded> {
  const loaded = await find(place, activations, signal);
  if (activations === "f32" || prepare === false) return loaded;
  // Tables of tokens are not multiplied with.
  const isMatrix = ({ name, shape }: GgufTensor): boolean => name.startsWith("blk.") && shape.length > 1;
  const matrices = [...loaded.file.tensors.values()].filter(isMatrix);
  const prepareAll = async (): Promise<void> => {
    for (const matrix of matrices) await matrix.prepare({ threads, signal });
  };
  if (prepare) await prepareAll();
  else if (loaded.isOwn && areFew(matrices)) return { ...loaded, prepareAll };
  return loaded;
}

/** Weights that are prepared without being asked for: the memory that they take is less than what Node.js has at its start. */
const FEW_WEIGHTS = 2 ** 25;

const areFew = (matrices: readonly GgufTensor[]): boolean =>
  matrices.reduce((sum, { elementCount }) => sum + elementCount, 0) <= FEW_WEIGHTS;

async function find(
  place: Place | PostedPlace,
  activations: NetworkOptions["activations"],
  signal?: AbortSignal,
): Promise<Loaded> {
  if (place instanceof GgufFile) return { file: place, isOwn: false, prompts: {} };
  if (typeof place === "string" || "href" in place) {
    const at = /^(file)?$/.test(schemeOf(place) ?? "") ? checkPath(place) : String(place);
    if (isSafetensors(at)) {
      const { loadCheckpoint } = await import("./checkpoint.js");
      return { ...(await loadCheckpoint(at, activations === "int8", signal)), isOwn: true };
    }
    place = at;
  }
  return { file: await fileOf(place, signal), isOwn: true, prompts: {} };
}

async function fileOf(place: GgufModel | PostedPlace, signal: AbortSignal | undefined): Promise<GgufFile> {
  if (place instanceof Uint8Array) return parse(place);
  if (Array.isArray(place)) {
    const file = await openPath(place[0].path, { splits: place.length > 1, signal });
    // As the same files, since their paths may lead to others now.
    const { checkStates } = await import("../source/file.js");
    await checkStates(place);
    return file;
  }
  const model: GgufModel =
    typeof place === "string" || isBlob(place) ? await open(place as string, { signal }) : (place as GgufModel);
  if (model instanceof GgufFile) return model;
  const { inMemory } = await import("./in-memory.js");
  return inMemory(model, signal);
}

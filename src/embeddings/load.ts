/** Opens what an embedder runs, wherever it is. */

import type { GgufModel } from "../file/model";
import { checkPath, open } from "../file/open";
import { GgufFile, parse } from "../file/parse";
import { isSafetensors } from "../safetensors/is-safetensors";
import type { FileAsOpened } from "../source/source";
import { schemeOf } from "../source/url";

/** A model that is open. */
export interface Loaded {
  readonly file: GgufFile;
  /** Whether it was opened here, and is to be closed here. */
  readonly isOwn: boolean;
  readonly prompts: Readonly<Record<string, string>>;
}

/** Where a model is. */
export type Place = string | URL | Blob | GgufModel;

/** The same for another thread: an open model as the files that are mapped, or as its bytes. */
export type PostedPlace = string | Blob | readonly [FileAsOpened, ...FileAsOpened[]] | Uint8Array;

/** @throws as the functions that open */
export async function load(place: Place | PostedPlace, signal?: AbortSignal): Promise<Loaded> {
  if (place instanceof GgufFile) return { file: place, isOwn: false, prompts: {} };
  return { file: await fileOf(place, signal), isOwn: true, prompts: {} };
}

/** What is seldom needed is loaded then: a file of this machine is there at once. */
async function fileOf(place: Place | PostedPlace, signal: AbortSignal | undefined): Promise<GgufFile> {
  if (place instanceof Uint8Array) return parse(place);
  if (Array.isArray(place)) {
    const file = await open(place[0].path, { splits: place.length > 1, signal });
    // As the same files, since their paths may lead to others now.
    const { checkStates } = await import("../source/file.js");
    await checkStates(place);
    return file;
  }
  const { inMemory } = await import("./in-memory.js");
  if (typeof place === "object" && "arrayBuffer" in place) {
    const { openBlob } = await import("../file/blob-file.js");
    return inMemory(await openBlob(place, { signal }), signal);
  }
  if (typeof place === "object" && "tensors" in place) return inMemory(place as GgufModel, signal);
  const at = place as string | URL;
  const isHere = /^(file)?$/.test(schemeOf(at) ?? "") && !isSafetensors(checkPath(at));
  if (isHere) return open(at, { signal });
  const { openUnlessLocal } = await import("../safetensors/open-model.js");
  const found = await openUnlessLocal(at, { signal });
  return typeof found === "string" ? open(found, { signal }) : inMemory(found, signal);
}

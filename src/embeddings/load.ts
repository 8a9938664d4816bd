/** Opens what an embedder runs, wherever it is. */

import { openBlob } from "../file/blob-file";
import type { GgufModel } from "../file/model";
import { open } from "../file/open";
import { GgufFile, parse } from "../file/parse";
import { openUnlessLocal } from "../safetensors/open-model";
import { checkStates } from "../source/file";
import type { FileAsOpened } from "../source/source";
import { inMemory } from "./in-memory";

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

async function fileOf(place: Place | PostedPlace, signal: AbortSignal | undefined): Promise<GgufFile> {
  if (place instanceof Uint8Array) return parse(place);
  if (Array.isArray(place)) {
    const file = await open(place[0].path, { splits: place.length > 1, signal });
    // As the same files, since their paths may lead to others now.
    await checkStates(place);
    return file;
  }
  if (typeof place === "object" && "arrayBuffer" in place)
    return inMemory(await openBlob(place, { signal }), signal);
  if (typeof place === "object" && "tensors" in place) return inMemory(place as GgufModel, signal);
  const found = await openUnlessLocal(place as string | URL, { signal });
  return typeof found === "string" ? open(found, { signal }) : inMemory(found, signal);
}

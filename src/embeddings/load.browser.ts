/** In place of `load.ts` where there are no files. */

import { openBlob } from "../file/blob-file";
import type { GgufModel } from "../file/model";
import { GgufFile } from "../file/parse";
import { openRemote } from "../file/remote-file";
import { inMemory } from "./in-memory";

export interface Loaded {
  readonly file: GgufFile;
  /** Whether it was opened here, and is to be closed here. */
  readonly isOwn: boolean;
  readonly prompts: Readonly<Record<string, string>>;
}

export type Place = string | URL | Blob | GgufModel;

export async function load(place: Place, signal: AbortSignal | undefined): Promise<Loaded> {
  if (place instanceof GgufFile) return { file: place, isOwn: false, prompts: {} };
  const model =
    typeof place === "string" || "href" in place
      ? await openRemote(place, { signal })
      : "arrayBuffer" in place
        ? await openBlob(place, { signal })
        : place;
  return { file: await inMemory(model, signal), isOwn: true, prompts: {} };
}

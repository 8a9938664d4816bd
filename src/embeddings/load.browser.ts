/** In place of `load.ts` where there are no files. */

import { openBlob } from "../file/blob-file";
import { GgufFile } from "../file/parse";
import { openRemote } from "../file/remote-file";
import { inMemory } from "./in-memory";
import type { Loaded, Place } from "./place";

export async function load(place: Place, _: unknown, signal: AbortSignal | undefined): Promise<Loaded> {
  if (place instanceof GgufFile) return { file: place, isOwn: false, prompts: {} };
  const model =
    typeof place === "string" || "href" in place
      ? await openRemote(place, { signal })
      : "arrayBuffer" in place
        ? await openBlob(place, { signal })
        : place;
  return { file: await inMemory(model, signal), isOwn: true, prompts: {} };
}

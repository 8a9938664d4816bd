/** Whether the files of an open model are still what was opened. */
import { checkStates } from "../source/file";
import type { FileAsOpened } from "../source/source";
import { filesOf, type GgufModel } from "./model";

/** Files that are mapped, as they were opened. */
export function mappedFiles(model: GgufModel): readonly FileAsOpened[] {
  return filesOf(model).flatMap(({ path, state }) => (path === undefined || !state ? [] : { path, state }));
}

/**
 * Checks files that are mapped and those of sources. What a server has notices changes by itself.
 * @throws GgufError ERR_GGUF_CHANGED
 */
export async function checkUnchanged(model: GgufModel): Promise<void> {
  await checkStates(mappedFiles(model));
  for (const { source } of filesOf(model)) await source?.check();
}

/** The models in a folder. */
import { type Dirent, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { shardNumber } from "../../file/shard-names";
import { isFolder } from "../../safetensors/is-safetensors";

/** The most files that are looked at together. */
const MOST_FILES = 2 ** 16;

/** Whether a path is a folder, but not one of safetensors, which is one model. */
export function isFolderOfModels(path: string): boolean {
  return isFolder(path) && !readdirSync(path).some((name) => /\.safetensors$/i.test(name));
}

/**
 * The GGUF files in a folder and the folders in it, by name. Links to files count, those to folders do not.
 * @param splits whether of a split model only the first file counts
 * @throws Error where there are too many
 */
export function filesIn(folder: string, splits: boolean): string[] {
  const found: string[] = [];
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    const entries = readdirSync(at, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    const inside: string[] = [];
    for (const entry of entries) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) inside.push(path);
      else if (isModel(entry, path, splits)) found.push(path);
      if (found.length > MOST_FILES) throw new Error(`${folder} has more than ${MOST_FILES} models`);
    }
    folders.push(...inside.reverse());
  }
  return found;
}

function isModel(entry: Dirent, path: string, splits: boolean): boolean {
  if (!/\.gguf$/i.test(entry.name)) return false;
  if (splits && (shardNumber(entry.name)?.number ?? 1) > 1) return false;
  const stats = entry.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : entry;
  return stats?.isFile() ?? false;
}

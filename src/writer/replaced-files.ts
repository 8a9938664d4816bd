/**
 * What new files may take the place of: the rules for the library and for every command. A file is known by device and
 * inode, whatever paths lead to it.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GgufError } from "../base/errors";
import { shardNumber, siblingPath } from "../file/shard-names";
import { FileSource } from "../source/file";
import { beginsAsGguf } from "../source/source";
import { destinationOf } from "./destination";

/** What files are written from, and what they are. */
export interface Origin {
  /** The files of the model that they are made of. */
  readonly model?: readonly string[] | undefined;
  /** Other files that are read. */
  readonly others?: readonly string[] | undefined;
  /** Whether they are GGUF files. Default: yes. */
  readonly isGguf?: boolean | undefined;
}

/** What a new file takes the place of: a file of the model that it is made of, or any other file. */
export type Replaced = "input" | "other";

/**
 * Refuses outputs that would destroy what they are made of. New GGUF files may take the place of the files of their model,
 * of all of them or of none: the other files of a split model are worth nothing alone, also where only one of them is
 * read. Nothing else takes the place of a file that is read. Any other file is replaced only with `overwrite`. What is
 * written to and not replaced, such as /dev/stdout, may be any file without it, but no GGUF file.
 *
 * @returns the outputs that take the place of a file
 * @throws GgufError ERR_GGUF_WRITE
 */
export async function checkReplaced(
  outputs: readonly string[],
  origin: Origin,
  overwrite: boolean,
): Promise<Map<string, Replaced>> {
  const { isGguf = true } = origin;
  const model = await identitiesOf(origin.model ?? []);
  const others = await identitiesOf(origin.others ?? []);
  const siblings = await identitiesOf(isGguf ? await siblingsOf(origin.model?.[0]) : []);
  const replaced = new Map<string, string>();
  const found = new Map<string, Replaced>();
  for (const path of outputs) {
    const identity = await identityOf(path);
    if (identity === undefined) continue;
    const input = others.get(identity) ?? (isGguf ? undefined : model.get(identity));
    if (input !== undefined) throw refused(path, input, "a file that is read: choose another name");
    found.set(path, model.has(identity) ? "input" : "other");
    if (model.has(identity)) replaced.set(identity, path);
    else if (siblings.has(identity)) throw refused(path, siblings.get(identity) as string, PART);
    else if (overwrite) continue;
    else if ((await destinationOf(path)).isReplaced) throw existsError(path);
    else if (!isGguf && (await isGgufFile(path))) {
      throw refused(path, path, "a GGUF file: something else is written to it only with --force");
    }
  }
  const [first] = replaced;
  if (first === undefined || (replaced.size === model.size && outputs.length === model.size)) return found;
  const [identity, path] = first;
  throw refused(path, model.get(identity) as string, PART);
}

const PART = "a file of the model that is read, whose other files are worth nothing alone: choose another name";

/** The files of the split model that a file is of by its name, or by that of the file to which it leads. */
async function siblingsOf(path: string | undefined): Promise<string[]> {
  if (path === undefined) return [];
  const found: string[] = [];
  for (const name of new Set([path, await realpath(path).catch(() => path)])) {
    const count = shardNumber(name)?.count;
    if (count === undefined) continue;
    const folder = dirname(name);
    for (const other of await readdir(folder).catch(() => [])) {
      const no = shardNumber(other)?.number;
      const sibling = no === undefined ? undefined : siblingPath(name, no - 1, count);
      if (sibling !== undefined && join(sibling) === join(folder, other)) found.push(sibling);
    }
  }
  return found;
}

/** Something is there already, and is not to be replaced. */
export function existsError(path: string): GgufError {
  const cause = Object.assign(new Error("EEXIST: file already exists"), { code: "EEXIST", path });
  const detail = "exists already: choose another name, or replace it with --force (overwrite: true)";
  return new GgufError("ERR_GGUF_WRITE", detail, { path, cause });
}

function refused(path: string, input: string, what: string): GgufError {
  const detail = path === input ? `is ${what}` : `is the same file as ${input}, ${what}`;
  return new GgufError("ERR_GGUF_WRITE", detail, { path });
}

/** The paths by what they lead to. */
async function identitiesOf(paths: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const path of paths) {
    const identity = await identityOf(path);
    if (identity !== undefined) found.set(identity, path);
  }
  return found;
}

/** What tells a regular file from any other. A URL has none, and what cannot be looked at fails when it is opened. */
async function identityOf(path: string): Promise<string | undefined> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined);
  return stats?.isFile() ? `${stats.dev}:${stats.ino}` : undefined;
}

/** Whether it is a GGUF file that can be read. */
async function isGgufFile(path: string): Promise<boolean> {
  const file = await FileSource.open(path).catch(() => undefined);
  try {
    return file !== undefined && (await beginsAsGguf(file));
  } finally {
    await file?.close();
  }
}

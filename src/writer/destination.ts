/** What the path of an output leads to. */
import type { Stats } from "node:fs";
import { readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";

export interface Destination {
  /** Where the symbolic links end, whether there is a file or not. */
  readonly path: string;
  /** What is there. */
  readonly existing: Stats | undefined;
  /** The number of the descriptor of this process that the path is a name of, such as 1 of /dev/stdout. */
  readonly descriptor: number | undefined;
  /**
   * Whether it is a regular file, or does not exist yet, so that a complete new file can take its place. Never true of a
   * descriptor of any process, even of a file: what others write there before and after must stay.
   */
  readonly isReplaced: boolean;
}

/** Names of the descriptors of a process. /dev/stdout is a link to one, and so is /proc/self/fd/1. */
const DESCRIPTOR = /^\/(?:dev|proc\/(self|thread-self|\d+)(?:\/task\/\d+)?)\/fd\/(\d+)$/;

/** @throws the system's error, unless that is ENOENT */
export async function destinationOf(path: string): Promise<Destination> {
  // Fails where links form a loop.
  const existing = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  for (let place = path; ; ) {
    const named = DESCRIPTOR.exec(await withRealFolder(place));
    const link = named === null ? await readlink(place).catch(() => undefined) : undefined;
    if (link === undefined) {
      const isReplaced = named === null && (existing?.isFile() ?? !isFolderName(place));
      return { path: place, existing, descriptor: ownDescriptor(named), isReplaced };
    }
    // Not joined: the system takes ".." from where the folder really is.
    place = isAbsolute(link) ? link : `${dirname(place)}${sep}${link}`;
  }
}

/** The path without links, except in its last part. */
async function withRealFolder(path: string): Promise<string> {
  const absolute = resolve(path);
  if (DESCRIPTOR.test(absolute)) return absolute;
  const folder = await realpath(dirname(absolute)).catch(() => dirname(absolute));
  return join(folder, basename(absolute));
}

function ownDescriptor(named: RegExpExecArray | null): number | undefined {
  const [, owner = "self", number] = named ?? [];
  const isOwn = ["self", "thread-self", String(process.pid)].includes(owner);
  return number !== undefined && isOwn ? Number(number) : undefined;
}

function isFolderName(path: string): boolean {
  return path.endsWith("/") || path.endsWith(sep);
}

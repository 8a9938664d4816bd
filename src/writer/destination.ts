/** What the path of an output leads to. */
import type { Stats } from "node:fs";
import { readlink, stat } from "node:fs/promises";
import { dirname, isAbsolute, resolve, sep } from "node:path";

export interface Destination {
  /** Where the symbolic links end, whether there is a file or not. */
  readonly path: string;
  /** What is there. */
  readonly existing: Stats | undefined;
  /** The number of the descriptor of this process that the path is a name of, such as 1 of /dev/stdout. */
  readonly descriptor: number | undefined;
  /**
   * Whether it is a regular file, or does not exist yet, so that a complete new file can take its place. Never true of a
   * descriptor, even of a file: what others write there before and after must stay.
   */
  readonly isReplaced: boolean;
}

/** Names of this process's descriptors. /dev/stdout is a link to one. */
const DESCRIPTOR = /^\/(?:dev|proc\/self)\/fd\/(\d+)$/;

/** @throws the system's error, unless that is ENOENT */
export async function destinationOf(path: string): Promise<Destination> {
  // Fails where links form a loop.
  const existing = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  for (let place = path; ; ) {
    const number = DESCRIPTOR.exec(resolve(place))?.[1];
    const link = number === undefined ? await readlink(place).catch(() => undefined) : undefined;
    if (link === undefined) {
      const descriptor = number === undefined ? undefined : Number(number);
      const isReplaced = descriptor === undefined && (existing?.isFile() ?? !isFolderName(place));
      return { path: place, existing, descriptor, isReplaced };
    }
    // Not joined: the system takes ".." from where the folder really is.
    place = isAbsolute(link) ? link : `${dirname(place)}${sep}${link}`;
  }
}

function isFolderName(path: string): boolean {
  return path.endsWith("/") || path.endsWith(sep);
}

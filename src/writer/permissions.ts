/** Owner, group and mode of a file that takes the place of another. Everything is done to the handle, not to a name. */
import { readFileSync, type Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";

/**
 * Gives a new file the owner, group and mode of the one it replaces, as far as this process may.
 * @param existing undefined where there is none: the mode is then what the system gives new files
 * @returns a sentence that says what is not as before; undefined where all is
 */
export async function takeOver(handle: FileHandle, existing: Stats | undefined): Promise<string | undefined> {
  if (existing === undefined) {
    await handle.chmod(0o666 & ~currentUmask());
    return undefined;
  }
  if (process.platform !== "win32") {
    const { uid, gid } = existing;
    // Before the mode: the system takes setuid and setgid away from a file that changes hands.
    await handle.chown(uid, gid).catch(() => handle.chown(process.geteuid?.() ?? uid, gid).catch(() => undefined));
  }
  const { uid, gid } = await handle.stat();
  await handle.chmod(modeFor(existing, uid, gid));
  if (uid === existing.uid && gid === existing.gid) return undefined;
  return `the new file belongs to user ${uid} and group ${gid}, the one that it replaces to user ${existing.uid} and group ${existing.gid}`;
}

/** What the old mode becomes with another owner or group. */
export function modeFor(existing: Pick<Stats, "mode" | "uid" | "gid">, uid: number, gid: number): number {
  const sameGroup = gid === existing.gid;
  if (sameGroup && uid === existing.uid) return existing.mode & 0o7777;
  const mode = existing.mode & 0o777;
  // What a group may do is not for another one: that gets what everybody may.
  return sameGroup ? mode : mode & (0o707 | ((mode & 0o7) << 3));
}

/** process.umask() sets the mask for a moment, which other threads notice. Linux tells it without. */
function currentUmask(): number {
  try {
    const mask = /^Umask:\s*([0-7]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    if (mask !== undefined) return Number.parseInt(mask, 8);
  } catch {
    // Another system.
  }
  return process.umask();
}

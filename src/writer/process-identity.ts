/** Which process holds a journal, in a form that another process can check: a killed one holds nothing. */
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** A process, told apart from any other that had or will have its number. Parts that the system does not tell are null. */
export interface ProcessIdentity {
  readonly host: string;
  /** Changes with each start of the machine. */
  readonly boot: string | null;
  /** The set of processes that its number counts in: containers have their own. */
  readonly namespace: string | null;
  readonly pid: number;
  /** When it started. */
  readonly started: string | null;
}

export function thisProcess(): ProcessIdentity {
  return {
    host: hostname(),
    boot: orNull(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    namespace: orNull(() => readlinkSync("/proc/self/ns/pid")),
    pid: process.pid,
    started: stateOf(process.pid)?.started ?? null,
  };
}

/** Whether a process still runs; undefined where that cannot be known, such as of another machine. */
export function isRunning(other: ProcessIdentity, here = thisProcess()): boolean | undefined {
  if (other.host !== here.host) return undefined;
  if (other.boot !== here.boot) return false;
  if (other.namespace !== here.namespace) return undefined;
  try {
    process.kill(other.pid, 0);
  } catch (error) {
    // EPERM: it runs, and belongs to another user.
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  const found = stateOf(other.pid);
  if (found === undefined || other.started === null) return true;
  return found.started === other.started && !found.ended;
}

/** The process that a name is of, as it is in the name: digests of its machine, number and start. */
export const TAG = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-\d+-\d*$/;

/** This process, in a form for names. It stays the same for as long as the process lives. */
export function processTag(): string {
  tag ??= tagOf(thisProcess());
  return tag;
}
let tag: string | undefined;

function tagOf({ host, boot, namespace, pid, started }: ProcessIdentity): string {
  return [...[host, boot, namespace].map(digest), pid, started ?? ""].join("-");
}

/** Whether the process of a tag has ended for certain. */
export function hasEnded(tag: string): boolean {
  const [host = "", boot = "", namespace = "", pid, started] = tag.split("-");
  const here = thisProcess();
  const digests = { host: digest(here.host), boot: digest(here.boot), namespace: digest(here.namespace) };
  const other = { host, boot, namespace, pid: Number(pid), started: started || null };
  return TAG.test(tag) && isRunning(other, { ...here, ...digests }) === false;
}

function digest(text: string | null): string {
  return createHash("sha256")
    .update(text ?? "")
    .digest("hex")
    .slice(0, 8);
}

/** What Linux says of a process. One that has ended stays listed until its parent asks how. */
function stateOf(pid: number): { started: string; ended: boolean } | undefined {
  const text = orNull(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (text === null) return undefined;
  // The name, in parentheses, can hold anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { started: fields[19] ?? "", ended: /[ZX]/.test(fields[0] ?? "") };
}

function orNull(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}

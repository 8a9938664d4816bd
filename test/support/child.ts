/**
 * Other programs that tests run. Each has a time limit: what reaches it is killed, and the error quotes what it had printed.
 * Lint sees to it that tests start none in another way.
 */
import assert from "node:assert/strict";
import {
  type ChildProcessWithoutNullStreams,
  type SpawnOptions,
  type SpawnSyncOptions,
  type SpawnSyncReturns,
  spawn,
  spawnSync,
} from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { emulated } from "./emulated";
import { sanitized } from "./sanitized";

/** Its streams are null where `stdio` says so. */
export type Child = ChildProcessWithoutNullStreams;

/** `limit` is in milliseconds, on a machine that is not slower than most: 120,000 unless it is given. */
type Limited<T> = Omit<T, "timeout" | "killSignal"> & { limit?: number };

const SLOWNESS = emulated ? 10 : sanitized ? 5 : 1;
const LIMIT = 120_000;
const QUOTED = 10_000; // characters of each stream

type Printed = { stdout: unknown; stderr: unknown };

function limitError(command: string, args: readonly string[], limit: number, printed: Printed): Error {
  const quoted = (text: unknown) => String(text ?? "").slice(-QUOTED);
  return new Error(
    `killed, since it had not ended after ${limit / 1000} s: ${[command, ...args].join(" ")}\n` +
      `stdout: ${quoted(printed.stdout)}\nstderr: ${quoted(printed.stderr)}`,
  );
}

/** spawnSync of text, or of bytes with `encoding: "buffer"`. */
export function runSync(
  command: string,
  args: readonly string[],
  options: Limited<SpawnSyncOptions> & { encoding: "buffer" },
): SpawnSyncReturns<Buffer>;
export function runSync(
  command: string,
  args: readonly string[],
  options?: Limited<SpawnSyncOptions> & { encoding?: never },
): SpawnSyncReturns<string>;
export function runSync(
  command: string,
  args: readonly string[],
  { limit = LIMIT, ...options }: Limited<SpawnSyncOptions> = {},
): SpawnSyncReturns<string | Buffer> {
  const timeout = limit * SLOWNESS;
  const most = { encoding: "utf8", maxBuffer: 2 ** 30, killSignal: "SIGKILL", timeout } as const;
  const outcome = spawnSync(command, args, { ...most, ...options });
  const { code } = (outcome.error ?? {}) as NodeJS.ErrnoException;
  if (code === "ETIMEDOUT") throw limitError(command, args, timeout, outcome);
  return outcome;
}

/** Whether a program is there and ends with exit code 0. */
export const succeeds = (command: string, args: readonly string[] = ["--version"]): boolean =>
  runSync(command, args).status === 0;

/** Runs Node. */
export const runNode = (args: readonly string[], options?: Limited<SpawnSyncOptions> & { encoding?: never }) =>
  runSync(process.execPath, args, options);

/** The end of what a stream gives, which stays to be read by whoever reads it. */
function overhear(stream: Readable | null): () => string {
  let heard = "";
  if (stream) {
    const push = stream.push;
    stream.push = function (this: Readable, chunk, encoding) {
      if (chunk !== null) heard = (heard + chunk).slice(-QUOTED);
      return push.call(this, chunk, encoding);
    };
  }
  return () => heard;
}

/** Kills a child, and does not wait for the ends of its streams, which its own children may hold. */
function kill(child: Child): boolean {
  child.stdout?.destroy();
  child.stderr?.destroy();
  return child.kill("SIGKILL");
}

/** spawn. A child that reaches its limit emits "error": what waits for it by `once` is rejected. */
export function start(
  command: string,
  args: readonly string[],
  { limit = LIMIT, ...options }: Limited<SpawnOptions> = {},
): Child {
  const child = spawn(command, args, options) as Child;
  const [stdout, stderr] = [overhear(child.stdout), overhear(child.stderr)];
  const timer = setTimeout(() => {
    kill(child);
    const printed = { stdout: stdout(), stderr: stderr() };
    child.emit("error", limitError(command, args, limit * SLOWNESS, printed));
  }, limit * SLOWNESS);
  child.on("close", () => clearTimeout(timer));
  timer.unref();
  return child;
}

export interface Outcome {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/**
 * Waits for the end of a child that was just started. One that does not end within `grace` milliseconds after
 * `isComplete` holds for what it printed is killed and counts as ended well: Node sometimes hangs once all is done.
 */
export async function outcomeOf(
  child: Child,
  isComplete: (stdout: string) => boolean = () => false,
  grace = 10_000,
): Promise<Outcome> {
  const printed = { stdout: "", stderr: "" };
  let timer: NodeJS.Timeout | undefined;
  let isCut = false;
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    printed.stderr += text;
  });
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    printed.stdout += text;
    if (timer !== undefined || !isComplete(printed.stdout)) return;
    timer = setTimeout(() => {
      isCut = kill(child);
    }, grace * SLOWNESS);
  });
  const [status, signal] = await once(child, "close").finally(() => clearTimeout(timer));
  if (!isCut || signal !== "SIGKILL") return { status, signal, ...printed };
  console.log(`killed, since it had printed its result and did not end: ${child.spawnargs.join(" ")}`);
  return { status: 0, signal: null, ...printed };
}

/** Waits until something holds, as long as a child lives that brings it about. */
export async function untilWith(child: Child, isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    assert.equal(child.exitCode ?? child.signalCode, null, "it ended before");
    await delay(5);
  }
}

const isLine = (stdout: string) => stdout.endsWith("\n");

/** Runs Node with a program that prints one line, its result. */
export const outcomeOfLine = (args: readonly string[], options?: Limited<SpawnOptions>) =>
  outcomeOf(start(process.execPath, args, options), isLine);

/** What such a program prints, which must succeed. */
export async function lineOf(args: readonly string[], options?: Limited<SpawnOptions>): Promise<string> {
  const { status, signal, stdout, stderr } = await outcomeOfLine(args, options);
  assert.equal(status ?? signal, 0, stderr + stdout);
  return stdout;
}

/** The path of a program of this folder. */
export const childProgram = (name: string): string => join(__dirname, `${name}-child.js`);

/** What such a program prints as JSON, with more in its environment. */
export async function resultOf<T>(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<T> {
  const all = ["--no-warnings", childProgram(name), ...args];
  return JSON.parse(await lineOf(all, { env: { ...process.env, ...env } })) as T;
}

// Running other programs: what the scripts share.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { root } from "./paths.mjs";

/** Ends this process. */
export function fail(message) {
  console.error(message);
  process.exit(1);
}

/** Runs a program in the project and shows what it prints; ends this process if it fails. */
export function run(command, args, options = {}) {
  const { status, error, signal } = spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
  if (error) fail(`${command}: ${error.message}`);
  if (status !== 0) fail(`failed (${signal ?? `exit code ${status}`}): ${command} ${args.join(" ")}`);
}

/** Runs a task for each item, as many at once as there are processors. */
export async function forEachAtOnce(items, task) {
  const left = [...items];
  const work = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await task(item);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}

/** {@link run} for many: `calls` are lists of a command and its arguments. */
export const runAll = (calls) =>
  forEachAtOnce(calls, async ([command, ...args]) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit" });
    const [code] = await once(child, "exit").catch((error) => fail(`${command}: ${error.message}`));
    if (code !== 0) fail(`failed (exit code ${code}): ${command} ${args.join(" ")}`);
  });

/**
 * Runs a program; returns its exit code and what it prints. One that has not ended after `timeout` milliseconds is killed,
 * and ends this process with what it had printed; 0 is no limit.
 */
export function tryRun(command, args, options = {}) {
  const settings = { timeout: 600_000, killSignal: "SIGKILL", ...options };
  const outcome = spawnSync(command, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 30, ...settings });
  if (outcome.error?.code !== "ETIMEDOUT") return outcome;
  const { stdout, stderr } = outcome;
  const what = `killed, since it had not ended after ${settings.timeout / 1000} s: ${command} ${args.join(" ")}`;
  fail(`${what}\nstdout: ${stdout ?? ""}\nstderr: ${stderr ?? ""}`);
}

/** Runs a program and returns what it prints; ends this process if it fails. */
export function output(command, args, options = {}) {
  const { status, stdout, stderr, error } = tryRun(command, args, options);
  if (error) fail(`${command}: ${error.message}`);
  if (status !== 0) fail(`failed (exit code ${status}): ${command} ${args.join(" ")}\n${stderr}${stdout}`);
  return stdout;
}

/** The command that runs npm: the npm that runs this script, or the one that came with Node. */
export function npmCommand() {
  const folder = dirname(process.execPath);
  const installed = ["node_modules", "../lib/node_modules"].map((path) => join(folder, path, "npm/bin/npm-cli.js"));
  const script = [process.env.npm_execpath, ...installed].find((path) => path && existsSync(path));
  if (script === undefined) fail("npm was not found: run this through npm");
  return [process.execPath, script];
}

/** Runs npm and returns what it prints. */
export function npm(...args) {
  const [command, ...first] = npmCommand();
  return output(command, [...first, ...args]);
}

export function isThere(command) {
  return tryRun(command, ["--version"]).status === 0;
}

/** Clang, for the sanitizers: with them, GCC takes four times as long to compile the kernels. */
export const findClang = () => ["clang++", "clang++-16", "clang++-14"].find(isThere);

/** Unless all commands are there, says what to install and ends this process. A command is [name, Debian's package]. */
export function need(...commands) {
  const missing = commands.filter(([command]) => !isThere(command));
  for (const [command, debian] of missing) {
    console.error(`${command} was not found. On Debian and Ubuntu: apt-get install ${debian}`);
  }
  if (missing.length > 0) process.exit(1);
}

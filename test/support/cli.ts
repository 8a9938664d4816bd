/** Running the command line as it was built, in a folder of the calling test file. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { gaussianBlocks } from "./blocks";
import { type GgufSpec, writeGguf } from "./gguf-writer";
import { projectRoot, temporaryFolder } from "./paths";
import { Random } from "./random";

export const bin = join(projectRoot, "dist", "cli", "main.js");

/** Where commands run. */
export const folder = temporaryFolder();
export const at = (name: string): string => join(folder, name);

export interface Outcome {
  status: number | null;
  stdout: string;
  stderr: string;
  lines: string[];
}

export function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Outcome {
  const options = { cwd: folder, encoding: "utf8", env: { ...process.env, COLUMNS: "", ...env } } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    ...options,
    maxBuffer: 2 ** 28,
  });
  return { status, stdout, stderr, lines: stdout.split("\n") };
}

/** The same while this process goes on, for commands that talk to it. */
export async function runMeanwhile(args: readonly string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [bin, ...args], { cwd: folder });
  const [stdout, stderr, status] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once("close", resolve)),
  ]);
  return { status, stdout, stderr, lines: stdout.split("\n") };
}

/** What a command prints that has nothing to complain about. */
export function output(...args: readonly string[]): string {
  const { status, stdout, stderr } = run(args);
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout;
}

/** What a command prints with --json; `status` is what it has to exit with. */
export function json(args: readonly string[], status = 0) {
  const result = run([...args, "--json"]);
  assert.equal(result.status, status, result.stderr);
  return JSON.parse(result.stdout);
}

export function expectFailure(args: readonly string[], status: 1 | 2, message: RegExp): void {
  const result = run(args);
  assert.equal(result.status, status, result.stderr);
  assert.match(result.stderr, /^gguf-native: [^\n]*\n$/);
  assert.match(result.stderr, message);
  assert.equal(result.stdout, "");
}

/** No line is wider than it should be, and nothing is printed that moves a terminal. */
export function expectTidy(stdout: string, width = 80): void {
  for (const line of stdout.split("\n")) assert.ok([...line].length <= width, line);
  assert.doesNotMatch(stdout, /[^\P{C}\n]/u);
}

/** Temporary files that a command left behind. */
export function leftovers(): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tmp"));
}

/** Runs a command in a terminal of its own; what it shows, standard error included, the escape character as ESC. */
export function runInTerminal(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): { status: number | null; shown: string } {
  const quoted = [process.execPath, bin, ...args].map((arg) => `'${arg}'`).join(" ");
  const environment = { ...process.env, TERM: "xterm", NO_COLOR: "", ...env };
  const { status, stdout } = spawnSync("script", ["-qec", quoted, "/dev/null"], {
    ...{ cwd: folder, encoding: "utf8", env: environment, input: "" },
  });
  return { status, shown: stdout.replaceAll("\x1b", "ESC") };
}

/** Why `runInTerminal` does not work here, or false: what `skip` of a test wants. */
export const noTerminal: string | false =
  spawnSync("script", ["-qec", "true", "/dev/null"], { input: "" }).status === 0
    ? false
    : "no 'script' command that makes a terminal";

export function writeModel(name: string, spec: GgufSpec): void {
  writeFileSync(at(name), writeGguf(spec));
}

/** A tensor of float32s. */
export function floats(name: string, values: readonly number[], shape: number[] = [values.length]) {
  return { name, type: 0, shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

/** A tensor of random blocks. */
export function blocks(name: string, type: GgmlType, shape: number[], seed: number) {
  const { id, blockSize } = ggmlTypes[type];
  const count = shape.reduce((product, dim) => product * dim, 1) / blockSize;
  return { name, type: id, shape, bytes: gaussianBlocks(type, count, new Random(seed)) };
}

/** Names that would do harm if they were believed. */
export const EVIL = "evil\x1b[31m\n\u202ename\x07";

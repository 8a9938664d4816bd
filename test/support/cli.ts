/**
 * Runs the command line as it was built, in a folder of the calling test file. Most tests run it in their own process,
 * on streams that are strings; what a process has (signals, pipes, exit codes) is tested on real ones.
 */
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { openSync } from "gguf-native";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { gaussianBlocks } from "./blocks";
import { runNode, runSync, succeeds } from "./child";
import { type GgufSpec, writeGguf } from "./gguf-writer";
import { projectRoot, temporaryFolder } from "./paths";
import { Random } from "./random";

const built = join(projectRoot, "dist", "cli");

/** The program. */
export const bin = join(built, "main.js");

interface TextStream {
  write(text: string | Uint8Array): unknown;
  isTTY?: boolean;
  columns?: number;
}

// Not part of the package's interface: loaded from where they were built.
const { Terminal } = require(join(built, "output", "terminal.js")) as {
  Terminal: new (streams: { stdout: TextStream; stderr: TextStream; env: NodeJS.ProcessEnv }) => object;
};
const { run: runCommand } = require(join(built, "run.js")) as {
  run(args: readonly string[], terminal: object): Promise<number>;
};

// A folder that a process is in cannot be removed everywhere: this is left before the folder is removed.
const before = process.cwd();
after(() => process.chdir(before));

/** Where commands run. */
export const folder = temporaryFolder();
export const at = (name: string): string => join(folder, name);
process.chdir(folder);

/** The names of the tensors of a model there. */
export function namesIn(name: string): string[] {
  using file = openSync(at(name));
  return [...file.tensors.keys()];
}

export interface Outcome {
  status: number | null;
  stdout: string;
  stderr: string;
  lines: string[];
}

/** A command: its arguments, or as one text where none of them holds a space. */
type Command = string | readonly string[];

const argumentsOf = (command: Command) => (typeof command === "string" ? command.split(" ") : command);

/** Runs a command in this process, with `env` as all of its environment and no terminal. */
export async function run(command: Command, env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  const text = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof text) => ({
    write: (piece: string | Uint8Array) => {
      text[name] += typeof piece === "string" ? piece : Buffer.from(piece).toString();
    },
  });
  const terminal = new Terminal({ stdout: stream("stdout"), stderr: stream("stderr"), env });
  const status = await runCommand(argumentsOf(command), terminal);
  // Windows refuses to write files of which a view is left; a process would end here.
  if (process.platform === "win32") {
    gc?.();
    await eventLoopTurn();
  }
  return { status, ...text, lines: text.stdout.split("\n") };
}

/** Runs a command in a process of its own. */
export function runProcess(args: readonly string[], env: NodeJS.ProcessEnv = {}): Outcome {
  const { status, stdout, stderr } = runNode([bin, ...args], {
    cwd: folder,
    env: { ...process.env, COLUMNS: "", ...env },
  });
  return { status, stdout, stderr, lines: stdout.split("\n") };
}

/** What a command prints that succeeds and has nothing to complain about. The first text may be several arguments. */
export async function output(...args: readonly string[]): Promise<string> {
  const [first = "", ...rest] = args;
  const { status, stdout, stderr } = await run([...argumentsOf(first), ...rest]);
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout;
}

/** What a command prints with --json; it must exit with `status`. */
export async function json(command: Command, status = 0) {
  const result = await run([...argumentsOf(command), "--json"]);
  assert.equal(result.status, status, result.stderr);
  return JSON.parse(result.stdout);
}

/** A command that prints nothing but one message on standard error, and `stdout`. */
export async function expectFailure(command: Command, status: 1 | 2, message: RegExp, stdout = ""): Promise<void> {
  const result = await run(command);
  assert.equal(result.status, status, result.stderr);
  assert.match(result.stderr, /^gguf-native: [^\n]*\n$/);
  assert.match(result.stderr, message);
  assert.equal(result.stdout, stdout);
}

/** No line is wider than it should be, and nothing is printed that moves a terminal. */
export function expectTidy(stdout: string, width = 80): void {
  for (const line of stdout.split("\n")) assert.ok([...line].length <= width, line);
  assert.doesNotMatch(stdout, /[^\P{C}\n]/u);
}

/** Text as it would be without colours. */
export function withoutColors(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
  return text.replaceAll(/\x1b\[\d+m/g, "");
}

/** Temporary files that a command left behind. */
export function leftovers(): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tmp"));
}

/** A terminal with colours, whatever terminal or CI service the tests run in: Node looks at all of these. */
const TERMINAL = {
  ...{ TERM: "xterm", NO_COLOR: "" },
  ...{
    CI: undefined,
    TF_BUILD: undefined,
    TEAMCITY_VERSION: undefined,
    TMUX: undefined,
    COLORTERM: undefined,
  },
  ...{ FORCE_COLOR: undefined, NODE_DISABLE_COLORS: undefined },
};

/** Runs a command in a terminal of its own; returns what it shows, standard error included, with ESC for the escape character. */
export function runInTerminal(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): { status: number | null; shown: string } {
  const quoted = [process.execPath, bin, ...args].map((arg) => `'${arg}'`).join(" ");
  const { status, stdout } = runSync("script", ["-qec", quoted, "/dev/null"], {
    cwd: folder,
    env: { ...process.env, ...TERMINAL, ...env },
    input: "",
  });
  return { status, shown: stdout.replaceAll("\x1b", "ESC") };
}

/** Why `runInTerminal` does not work here, or false: the value of `skip` of a test. */
export const noTerminal: string | false =
  !succeeds("script", ["-qec", "true", "/dev/null"]) && "no 'script' command that makes a terminal";

export function writeModel(name: string, spec: GgufSpec): void {
  writeFileSync(at(name), writeGguf(spec));
}

/** A tensor of float32s. */
export function floats(name: string, values: ArrayLike<number>, shape: number[] = [values.length]) {
  return { name, type: 0, shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

/** A tensor of random blocks. */
export function blocks(name: string, type: GgmlType, shape: number[], seed: number) {
  const { id, blockSize } = ggmlTypes[type];
  const count = shape.reduce((product, dim) => product * dim, 1) / blockSize;
  return { name, type: id, shape, bytes: gaussianBlocks(type, count, new Random(seed)) };
}

/** A name that would do harm if it were printed as it is. */
export const EVIL = "evil\x1b[31m\n\u202ename\x07";

/** Every element is closed, in order; every number is one, and every text is inside of the picture. */
export function expectPicture(svg: string): void {
  expectTidy(svg, Infinity);
  assert.doesNotMatch(svg.replaceAll(/>[^<]*</g, "><"), /NaN|Infinity|undefined|null/);
  const open: string[] = [];
  for (const [, end, name, alone] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (end) assert.equal(open.pop(), name);
    else if (!alone) open.push(name!);
  }
  assert.deepEqual(open, []);
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!.map(Number) as [number, number, number];
  for (const [, x, y, anchor, text] of svg.matchAll(
    /<text x="([\d.-]+)" y="([\d.-]+)" text-anchor="(\w+)"[^>]*>(?:<title>[^<]*<\/title>)?([^<]*)</g,
  )) {
    const plain = text!.replaceAll(/&#\d+;/g, "x").replaceAll(/[漢字]/g, "xx");
    // In most fonts of one width, a character takes six tenths of its height.
    const size = plain.length * 0.6 * Number(/font-size="(\d+)"/.exec(svg)![1]);
    const from = Number(x) - (anchor === "end" ? size : anchor === "middle" ? size / 2 : 0);
    assert.ok(from >= 0 && from + size <= width && Number(y) > 10 && Number(y) < height, text);
  }
}

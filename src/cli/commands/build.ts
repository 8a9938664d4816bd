/** `gguf-native build`: compiles the addon where no prebuilt one fits. Works without an addon. */
import { spawnSync } from "node:child_process";
import { accessSync, constants, copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { packageFolder } from "../../backend/addon";
import { escapeText, humanBytes } from "../../describe/text";
import { checkReplaced, existsError } from "../../writer/replaced-files";
import { placeNew, replace } from "../../writer/system-calls";
import { expectPositionals, parse } from "../arguments/parse";
import type { Command } from "../command";
import type { Progress } from "../output/progress";
import type { Terminal } from "../output/terminal";
import { FORCE_OPTION } from "../output/write-files";
import { compileAddon, countSources, SOURCES } from "../work/compile-addon";

const HELP = `Usage: gguf-native build [-o FILE] [--verbose]

Compiles the addon for this machine, from the sources in the package: for
systems without a prebuilt one. The result is put into the package, and used
from then on. Needs node-gyp, which comes with npm, Python 3, make and a C++17
compiler. Takes a minute or two.

  -o, --output FILE   put it here, not into the package. It is used where the
                      environment variable GGUF_NATIVE_ADDON names it
  --force             replaces FILE where it exists already
  --verbose           show what node-gyp and the compiler print

Examples:
  gguf-native build
  gguf-native build -o ./gguf_native.node
`;

const OPTIONS = {
  output: { type: "string", short: "o" },
  verbose: { type: "boolean" },
  ...FORCE_OPTION,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  expectPositionals(positionals);
  const folder = packageFolder();
  if (folder === undefined) throw new Error("the package was bundled: its sources are not here");
  const target = resolve(values.output ?? join(folder, "build", "Release", "gguf_native.node"));
  // What is in the package is there to be replaced.
  const force = values.force ?? values.output === undefined;
  await checkReplaced([target], { others: sourcesIn(folder), isGguf: false }, force);
  makeFolder(dirname(target), values.output !== undefined);

  const begin = performance.now();
  const compile = async (progress: Progress): Promise<{ isa: string; size: number }> => {
    const onOutput = (text: string): void => {
      progress.advance(text.match(/^ *CXX\(target\)/gm)?.length ?? 0);
      if (values.verbose) terminal.log(text);
    };
    return compileAddon(folder, onOutput, async (addon) => {
      const kernels = tryAddon(folder, addon);
      await put(addon, target, force);
      return { isa: kernels, size: statSync(target).size };
    });
  };
  const { isa, size } = await terminal.withProgress("compiling", countSources(folder), compile, "steps");
  const seconds = ((performance.now() - begin) / 1000).toFixed(0);
  terminal.print([
    escapeText(target),
    `compiled in ${seconds} s, ${humanBytes(size)}, kernels on this machine: ${isa}`,
  ]);
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** Every file that is compiled. */
function sourcesIn(folder: string): string[] {
  return SOURCES.flatMap((name) => {
    const path = join(folder, name);
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path, { recursive: true, encoding: "utf8" }).map((each) => join(path, each));
  });
}

/** Makes the folder of the addon before the compiler runs, which takes minutes. */
function makeFolder(folder: string, isChosen: boolean): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    const advice = isChosen ? "" : ": compile with '-o FILE', and set GGUF_NATIVE_ADDON to that FILE";
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(`nothing can be written to '${folder}' (${code})${advice}`, { cause });
  }
}

/** Loads the addon in a process of its own; returns the instruction set that it uses. */
function tryAddon(folder: string, addon: string): string {
  const script = `console.log(require(${JSON.stringify(folder)}).cpu().isa)`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["-e", script], {
    encoding: "utf8",
    env: { ...process.env, GGUF_NATIVE_ADDON: addon, NODE_OPTIONS: "" },
  });
  if (status === 0) return stdout.trim();
  const line = stderr.split("\n").find((text) => /^\w*Error/.test(text));
  throw new Error(`the addon was compiled, but does not load: ${line ?? stderr}`);
}

/** Whoever loads the addon at the same time finds the old one or the new one. */
async function put(addon: string, target: string, force: boolean): Promise<void> {
  const temporary = `${target}.${process.pid}.tmp`;
  try {
    copyFileSync(addon, temporary);
    await (force ? replace : placeNew)(temporary, target);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "EEXIST" ? existsError(target) : error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

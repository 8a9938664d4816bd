/** Compiles the addon from the sources in the package: what `gguf-native build` does. */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { listed } from "../arguments/parse";
import { headersFolder } from "./node-headers";

/** What is compiled, and what says how. */
export const SOURCES = ["package.json", "native", "vendor"];

const NODE_GYP = "node-gyp/bin/node-gyp.js";

/** How the compiler and what it needs is installed, by the name of a system in /etc/os-release or by platform. */
const INSTALL: Record<string, string> = {
  alpine: "apk add g++ make python3",
  debian: "apt-get install g++ make python3",
  ubuntu: "apt-get install g++ make python3",
  fedora: "dnf install gcc-c++ make python3",
  rhel: "dnf install gcc-c++ make python3",
  arch: "pacman -S gcc make python",
  suse: "zypper install gcc-c++ make python3",
  darwin: "xcode-select --install",
  win32: 'Visual Studio 2022 with "Desktop development with C++", and Python 3',
};

/**
 * Calls `use` with the path of a new addon, which is removed afterwards.
 * @param folder of the package
 * @param onOutput called with what node-gyp prints, as it prints it
 * @throws Error where something is missing, or the compiler fails
 */
export async function compileAddon<T>(
  folder: string,
  onOutput: (text: string) => void,
  use: (addon: string) => T,
): Promise<T> {
  checkTools();
  const nodeGyp = findNodeGyp();
  // Elsewhere than in the package: half an addon is never there, paths with spaces do no harm, and objects go away.
  const place = mkdtempSync(join(realpathSync(tmpdir()), "gguf-native-build-"));
  try {
    for (const name of SOURCES) cpSync(join(folder, name), join(place, name), { recursive: true });
    // In the package's own folder, package managers would take it for a wish to compile.
    cpSync(join(place, "vendor", "binding.gyp"), join(place, "binding.gyp"));
    const headers = headersFolder(place);
    const args = [nodeGyp, "rebuild", ...(headers === undefined ? [] : [`--nodedir=${headers}`])];
    const { status, output } = await runTool(process.execPath, args, place, onOutput);
    if (status !== 0) throw new Error(`the addon does not compile: ${firstError(output)}`);
    return use(join(place, "build", "Release", "gguf_native.node"));
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** The number of files that are compiled, each of which node-gyp names in a line. */
export function countSources(folder: string): number {
  return readFileSync(join(folder, "native", "sources.txt"), "utf8").match(/^[a-z]\S+/gm)?.length ?? 0;
}

function works(command = "", ...args: string[]): boolean {
  return command !== "" && spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** Fails before minutes are lost where something is missing. On Windows, node-gyp itself looks for Visual Studio. */
function checkTools(): void {
  const { env, platform } = process;
  if (platform === "win32") return;
  const pythons = [
    env.NODE_GYP_FORCE_PYTHON,
    env.npm_config_python ?? env.npm_package_config_node_gyp_python,
    env.PYTHON,
    "python3",
    "python",
  ];
  const [compiler, ...options] = (env.CXX || (platform === "darwin" ? "c++" : "g++")).split(" ");
  const missing = [
    !works(compiler, ...options, "--version") && "a C++17 compiler",
    !works(env.MAKE || "make", "--version") && "make",
    !pythons.some((name) => works(name, "-c", "import sys; sys.exit(sys.version_info < (3,))")) && "Python 3",
  ].filter((name) => name !== false);
  if (missing.length === 0) return;
  const were = missing.length === 1 ? "was" : "were";
  throw new Error(`compiling the addon needs ${listed(missing, "and")}, which ${were} not found: ${installAdvice()}`);
}

function installAdvice(): string {
  let names: string[] = [process.platform];
  try {
    const release = readFileSync("/etc/os-release", "utf8");
    names = Array.from(release.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm), ([, value]) => value ?? "");
  } catch {
    // No Linux.
  }
  const name = names
    .join(" ")
    .split(" ")
    .find((word) => INSTALL[word] !== undefined);
  return INSTALL[name ?? "debian"] as string;
}

/** The node-gyp of the package manager that runs this, of this folder, of the npm that came with Node, or on the PATH. */
function findNodeGyp(): string {
  const { env, execPath } = process;
  const folder = dirname(execPath);
  const onPath = (env.PATH ?? env.Path ?? "").split(delimiter).filter((path) => path !== "");
  const neighbours = [
    join(process.cwd(), "package.json"),
    env.npm_execpath,
    join(folder, "node_modules/npm/package.json"),
    join(folder, "../lib/node_modules/npm/package.json"),
    join(folder, "../lib/node_modules/node-gyp/package.json"),
    ...onPath.flatMap((path) => [join(path, "node-gyp"), join(path, "npm")]),
  ];
  if (env.npm_config_node_gyp && existsSync(env.npm_config_node_gyp)) return env.npm_config_node_gyp;
  for (const neighbour of neighbours) {
    try {
      // The real path, of a link on the PATH: what is required is looked for from there.
      return createRequire(realpathSync(neighbour ?? "")).resolve(NODE_GYP);
    } catch {
      // Not there.
    }
  }
  throw new Error("compiling the addon needs node-gyp, which was not found: npm install --global node-gyp");
}

async function runTool(
  command: string,
  args: readonly string[],
  cwd: string,
  onOutput: (text: string) => void,
): Promise<{ status: number | null; output: string }> {
  const child = spawn(command, args, {
    cwd,
    env: { JOBS: "max", ...process.env, NODE_OPTIONS: "" }, // Yarn's Plug'n'Play would be loaded into node-gyp, too
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      onOutput(text);
    });
  }
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject).on("close", resolve);
  });
  return { status, output };
}

/** The line that says most of what is wrong, in what compiler and node-gyp print. */
function firstError(output: string): string {
  const lines = output.split("\n").map((line) => line.trim());
  // An error of node-gyp itself has several lines, before those that say where in its code it was.
  const stack = lines.flatMap((text) => /^gyp ERR! stack (.*)$/.exec(text)?.[1] ?? []);
  const trace = stack.findIndex((text) => text.startsWith("at "));
  const message = trace < 0 ? stack : stack.slice(0, trace);
  const line =
    lines.find((text) => /\berror\b[ :]/i.test(text) && !text.startsWith("gyp")) ??
    (message.join(" ") || lines.findLast((text) => text !== ""));
  return `${line ?? "node-gyp failed"} (--verbose shows everything)`;
}

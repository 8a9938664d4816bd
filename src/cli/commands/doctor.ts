/** `gguf-native doctor`: what an issue report needs. Works, and says why, where the addon does not load. */
import { readFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { findAddon, packageFolder, system } from "../../backend/addon";
import { counted, escapeText, humanBytes } from "../../describe/text";
import { expectPositionals, parse } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native doctor [--json]

Shows what the package finds on this machine: system, C library, runtime, which
addon is loaded and why, or why none is and whether WebAssembly takes its place,
instruction sets, threads, memory, huge pages, and the environment variables
that change what it does. Please put this into reports of problems.

  --json   as JSON

Exits with 1 where neither can be loaded.

Examples:
  gguf-native doctor
  GGUF_NATIVE_ISA=scalar gguf-native doctor --json
`;

/** The environment variables that change what the package does; docs/install.md describes them. */
const SETTINGS = [
  "GGUF_NATIVE_ADDON",
  "GGUF_NATIVE_ISA",
  "GGUF_NATIVE_POOL_MB",
  "GGUF_NATIVE_STREAM_MB",
  "GGUF_NATIVE_WASM",
  "UV_THREADPOOL_SIZE",
  "NODE_OPTIONS",
];

const HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled";

interface Addon {
  path: string | null;
  /** Why it is this one. */
  reason: string | null;
  /** Why it does not load. */
  error: string | null;
}

interface Kernels {
  isa: string;
  available: string[];
  /** Threads that asynchronous work uses. */
  threads: number;
}

const OPTIONS = { json: { type: "boolean" } } as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  expectPositionals(positionals);
  const report = await examine();
  if (values.json) terminal.printJson(report);
  else terminal.print(rows(report).flatMap(([label, text]) => wrapped(label, text, terminal.width)));
  return report.kernels === null ? 1 : 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

type Report = Awaited<ReturnType<typeof examine>>;

async function examine() {
  const { addon, wasm, kernels } = await tryAddon();
  const folder = packageFolder() ?? null;
  const cpus = os.cpus();
  return {
    package: { version: versionOf(folder), path: folder },
    system: { name: system, release: systemName(), kernel: `${os.type()} ${os.release()}`, libc: libc() },
    runtime: { ...runtime(), path: process.execPath, options: process.execArgv },
    processor: {
      model: cpus[0]?.model.trim() ?? null,
      cores: cpus.length,
      usable: os.availableParallelism(),
    },
    memory: {
      bytes: os.totalmem(),
      freeBytes: os.freemem(),
      limitBytes: memoryLimit(),
      hugePages: hugePages(),
    },
    addon,
    wasm,
    kernels,
    settings: Object.fromEntries(SETTINGS.map((name) => [name, process.env[name] ?? null])),
  };
}

/** `wasm`: the WebAssembly module, where that is in use. */
async function tryAddon(): Promise<{ addon: Addon; wasm: Addon | null; kernels: Kernels | null }> {
  const addon: Addon = { path: null, reason: null, error: null };
  try {
    Object.assign(addon, findAddon());
  } catch (error) {
    addon.error = messageOf(error);
  }
  try {
    const { wasm } = await import("../../backend/native.js"); // loads one of them
    const { cpu } = await import("../../decode/cpu.js");
    return { addon, wasm: wasm === undefined ? null : { ...wasm, error: null }, kernels: cpu() };
  } catch (error) {
    addon.error = messageOf(error);
    return { addon, wasm: null, kernels: null };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function versionOf(folder: string | null): string | null {
  if (folder === null) return null;
  return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }).version;
}

function runtime(): { name: string; version: string } {
  const { bun, deno, electron, node } = process.versions;
  if (bun !== undefined) return { name: "Bun", version: bun };
  if (deno !== undefined) return { name: "Deno", version: deno };
  if (electron !== undefined) return { name: "Electron", version: electron };
  return { name: "Node.js", version: node };
}

/** The contents of a file of the system, if there is one that may be read. */
function readSystemFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function systemName(): string {
  const name = /^PRETTY_NAME="?([^"\n]*)/m.exec(readSystemFile("/etc/os-release") ?? "")?.[1];
  return name ?? os.version();
}

/** The C library, of which Linux has several. */
function libc(): string | null {
  if (process.platform !== "linux") return null;
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  const version = report?.header?.glibcVersionRuntime;
  return version === undefined ? "musl, or unknown" : `glibc ${version}`;
}

/** What a container may use, if that is less than there is. */
function memoryLimit(): number | null {
  const limit = process.constrainedMemory?.() ?? 0;
  return limit > 0 && limit < os.totalmem() ? limit : null;
}

/** When the system gives out huge pages: "always", "madvise", "never". */
function hugePages(): string | null {
  return /\[(\w+)\]/.exec(readSystemFile(HUGE_PAGES) ?? "")?.[1] ?? null;
}

/** The report in lines of a label and a text. */
function rows(report: Report): [string, string][] {
  const { addon, wasm, kernels, memory, processor, settings } = report;
  const { name, release, kernel, libc: library } = report.system;
  const options = report.runtime.options.map((option) => ` ${option}`).join("");
  return [
    ["package", `gguf-native ${report.package.version ?? "(bundled)"}`],
    ...(report.package.path === null ? [] : ([["", report.package.path]] as [string, string][])),
    ["system", [name, release, kernel, library].filter((text) => text !== null).join(", ")],
    ["runtime", `${report.runtime.name} ${report.runtime.version}${options}`],
    ["", report.runtime.path],
    ["processor", `${processor.model ?? "unknown"}, ${counted(processor.cores, "core")}, ${processor.usable} usable`],
    [
      "memory",
      `${humanBytes(memory.bytes)}, ${humanBytes(memory.freeBytes)} free${
        memory.limitBytes === null ? "" : `, limited to ${humanBytes(memory.limitBytes)}`
      }`,
    ],
    ["huge pages", memory.hugePages ?? "unknown"],
    ...rowsOf("addon", addon),
    ...(wasm === null ? [] : rowsOf("wasm", wasm)),
    ...(kernels === null
      ? []
      : ([
          ["kernels", `${kernels.isa}, of ${kernels.available.join(", ")}`],
          ["threads", `${kernels.threads} for asynchronous calls`],
        ] as [string, string][])),
    ...Object.entries(settings).map(([key, value]): [string, string] => [key, value ?? "not set"]),
  ];
}

function rowsOf(label: string, { path, reason, error }: Addon): [string, string][] {
  return [
    [label, path ?? "none"],
    ...(reason === null ? [] : ([["", reason]] as [string, string][])),
    ...(error === null ? [] : ([["error", error]] as [string, string][])),
  ];
}

/** The longest label. */
const LABEL_WIDTH = Math.max(...SETTINGS.map((name) => name.length)) + 2;

/** A label and a text in lines no longer than `width`, unless a single word is. */
function wrapped(label: string, text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of escapeText(text).split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && LABEL_WIDTH + last.length + 1 + word.length <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines.map((line, i) => `${(i === 0 ? label : "").padEnd(LABEL_WIDTH)}${line}`);
}

/** Runs a command line: finds the command, and turns errors into a message and an exit code. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRestricted } from "../backend/permission-model";
import { didYouMean } from "../base/suggest";
import { UsageError } from "./arguments/parse";
import type { Command, CommandList } from "./command";
import type { Terminal } from "./output/terminal";

const HELP = `Usage: gguf-native COMMAND ...

Look at models:
  inspect FILE...           what a GGUF file holds: summary, tensors, metadata
  get FILE KEY              a metadata value as it is, for other programs
  dequantize FILE TENSOR... tensors as numbers: .npy, .safetensors, .bin
  stats FILE [TENSOR...]    minimum, maximum, mean, deviation, histogram
  verify FILE...            check structure and values of whole files
  hash FILE...              SHA-256 of tensors and of the whole model
  diff A B                  in what two models differ, and by how much
  show FILE TENSOR          values of a tensor at a glance
  tokens FILE [TEXT]        the vocabulary, and texts in it
  view FILE [FILE]          look at a model, or at two, in the browser

Make models, and vectors of texts:
  quantize FILE OUT         the weights in fewer bits
  convert FOLDER OUT        a checkpoint as a GGUF file; other byte orders
  convert-lora FOLDER OUT   a LoRA adapter as a GGUF file
  merge-lora FILE LORA OUT  adapters added to the weights
  extract FILE TENSOR...    some tensors, or layers, in a file of their own
  remove FILE TENSOR...     a model without some of its tensors
  rename FILE TENSOR NAME   other names for tensors
  embed MODEL [FILE]        texts as vectors, and a search by meaning

Change files:
  set FILE KEY VALUE...     change, add or remove metadata
  split FILE [PREFIX]       one model in several files
  merge FILE OUT            a split model in one file
  recover FILE              finish or undo what a killed command left half done

This machine:
  bench [FILE]              how fast this machine dequantizes
  doctor                    what the package finds on this machine
  completion SHELL          completion of commands and options for a shell
  build                     compile the addon, where none is prebuilt

All that look (but for view) and all that make read URLs, too:
https://..., hf://OWNER/NAME/FILE.

  gguf-native COMMAND --help   options and examples of a command
  gguf-native --version

Exit codes: 0 good, 1 the file is bad (diff: they differ), 2 wrong usage.
`;

/** What is said to somebody who types the name alone. */
const INTRODUCTION = `gguf-native looks into GGUF models, the files of llama.cpp, and changes them.

  gguf-native inspect model.gguf     what is in it; or a folder, a URL, hf://...
  gguf-native view model.gguf        the same in the browser, with pictures
  gguf-native quantize model.gguf small.gguf --type Q4_K_M
  gguf-native --help                 all commands

No model at hand?
  gguf-native inspect hf://ggml-org/models/tinyllamas/stories260K.gguf
`;

// Loaded when they are needed: --help and --version work without the addon.
const commands: Record<string, () => Promise<{ command: Command }>> = {
  inspect: () => import("./commands/inspect.js"),
  get: () => import("./commands/get.js"),
  dequantize: () => import("./commands/dequantize.js"),
  stats: () => import("./commands/stats.js"),
  verify: () => import("./commands/verify.js"),
  hash: () => import("./commands/hash.js"),
  diff: () => import("./commands/diff.js"),
  show: () => import("./commands/show.js"),
  tokens: () => import("./commands/tokens.js"),
  embed: () => import("./commands/embed.js"),
  view: () => import("./commands/view.js"),
  bench: () => import("./commands/bench.js"),
  quantize: () => import("./commands/quantize.js"),
  convert: () => import("./commands/convert.js"),
  "convert-lora": () => import("./commands/convert-lora.js"),
  "merge-lora": () => import("./commands/merge-lora.js"),
  extract: () => import("./commands/extract.js"),
  remove: () => import("./commands/remove.js"),
  rename: () => import("./commands/rename.js"),
  set: () => import("./commands/set.js"),
  split: () => import("./commands/split.js"),
  merge: () => import("./commands/merge.js"),
  recover: () => import("./commands/recover.js"),
  completion: () => import("./commands/completion.js"),
  doctor: () => import("./commands/doctor.js"),
  build: () => import("./commands/build.js"),
};

/**
 * Runs the command that `args` name. Nothing is thrown: an error is one line on the terminal.
 * @param args what follows `gguf-native`
 * @returns the exit code: 0 good, 1 the file is bad, 2 wrong usage
 */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name] = args;
  try {
    return await dispatch(args, terminal);
  } catch (error) {
    const message = plainMessage(error);
    const isUsage = error instanceof UsageError;
    const hint = isUsage
      ? ` (see gguf-native ${isCommand(name) ? `${name} ` : ""}--help)`
      : (deniedHint(error) ?? (await interruptionHint(error)));
    terminal.complain(`${message}${hint}`);
    return isUsage ? 2 : 1;
  }
}

/** What Node.js says of a file begins with a code and ends with the path: errors here begin with the path. */
function plainMessage(error: unknown): string {
  const { message, path, syscall } = Object(error) as Record<string, unknown>;
  if (typeof message !== "string") return String(error);
  const [, reason] = /^E[A-Z0-9]+: (.*), \w+ '/s.exec(message) ?? [];
  return reason === undefined || typeof path !== "string" ? message : `${path}: cannot ${syscall}: ${reason}`;
}

/** What the permission model of Node.js refuses to a command. Its files to read are GgufErrors, so others are outputs. */
function deniedHint(error: unknown): string | undefined {
  const { code, permission } = Object(error) as { code?: unknown; permission?: unknown };
  if (code !== "ERR_ACCESS_DENIED") return undefined;
  return permission === "WorkerThreads"
    ? "; start Node.js with --allow-worker, too"
    : "; nothing can be written under the permission model of Node.js: start it without --permission";
}

function isCommand(name: string | undefined): boolean {
  return Object.hasOwn(commands, name ?? "");
}

/** A model may be broken because a change of it was interrupted: there is a journal beside it then. */
async function interruptionHint(error: unknown): Promise<string> {
  const { path, code, message } = Object(error) as { path?: unknown; code?: unknown; message?: unknown };
  if (typeof path !== "string" || !String(code).startsWith("ERR_GGUF")) return "";
  const { journalPath } = await import("../writer/journal-file.js");
  if (isRestricted() || !existsSync(journalPath(path)) || String(message).includes(".journal")) return "";
  return `; a change of this model was interrupted, or is under way: if it was interrupted, run 'gguf-native recover ${path}'`;
}

async function dispatch([name, ...args]: readonly string[], terminal: Terminal): Promise<number> {
  if (name === "--version" || name === "-v") {
    const manifest = readFileSync(join(__dirname, "..", "..", "package.json"), "utf8");
    terminal.print([(JSON.parse(manifest) as { version: string }).version]);
    return 0;
  }
  if (name === undefined) {
    terminal.printText(INTRODUCTION);
    return 0;
  }
  if (name === "--help" || name === "-h" || (name === "help" && args.length === 0)) {
    terminal.printText(HELP);
    return 0;
  }
  // 'help set' is 'set --help'.
  if (name === "help") return dispatch([args[0] as string, "--help"], terminal);
  const command = await loadCommand(name);
  const options = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  if (options.includes("--help") || options.includes("-h")) {
    terminal.printText(command.help);
    return 0;
  }
  return command.run(args, terminal, allCommands);
}

/** @throws UsageError for a name that no command has */
async function loadCommand(name: string): Promise<Command> {
  if (isCommand(name)) return (await (commands[name] as () => Promise<{ command: Command }>)()).command;
  const isFile = name.endsWith(".gguf");
  const isOption = name.startsWith("-");
  const hint = isFile
    ? `. Did you mean 'gguf-native inspect ${name}'?`
    : didYouMean(name, isOption ? ["--help", "--version"] : Object.keys(commands));
  throw new UsageError(`unknown ${isOption ? "option" : "command"} '${name}'${hint}`);
}

const allCommands: CommandList = () =>
  Promise.all(
    Object.keys(commands).map(async (name) => {
      const summary = new RegExp(`^  (?=${name} ).{26}(.*)$`, "m").exec(HELP)?.[1] ?? "";
      return { name, summary, command: await loadCommand(name) };
    }),
  );

#!/usr/bin/env node
/** The `gguf-native` command. Exit codes: 0 good, 1 the file is bad, 2 wrong usage. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "./args";
import { complain } from "./output/terminal";

/** A command: its help, and what runs it. Returns the exit code. */
export interface Command {
  help: string;
  run(args: string[]): Promise<number>;
}

const HELP = `Usage: gguf-native COMMAND ...

  inspect FILE              what a GGUF file holds: summary, tensors, metadata
  dequantize FILE TENSOR... tensors as numbers: .npy, .safetensors, .bin
  stats FILE TENSOR...      minimum, maximum, mean, deviation, histogram
  verify FILE...            check structure and values of whole files
  hash FILE...              SHA-256 of tensors and of the whole model
  diff A B                  in what two models differ, and by how much
  bench [FILE]              how fast this machine dequantizes
  set FILE KEY VALUE        change, add or remove metadata
  split FILE [PREFIX]       one model in several files
  merge FILE OUT            a split model in one file

  gguf-native COMMAND --help   options and examples of a command
  gguf-native --version

Exit codes: 0 good, 1 the file is bad (diff: they differ), 2 wrong usage.
`;

// Loaded when they are needed: --help and --version work without the addon.
const commands: Record<string, () => Promise<{ command: Command }>> = {
  inspect: () => import("./commands/inspect.js"),
  dequantize: () => import("./commands/dequantize.js"),
  stats: () => import("./commands/stats.js"),
  verify: () => import("./commands/verify.js"),
  hash: () => import("./commands/hash.js"),
  diff: () => import("./commands/diff.js"),
  bench: () => import("./commands/bench.js"),
  set: () => import("./commands/set.js"),
  split: () => import("./commands/split.js"),
  merge: () => import("./commands/merge.js"),
};

async function main([name, ...args]: string[]): Promise<number> {
  if (name === "--version" || name === "-v") {
    const manifest = readFileSync(join(__dirname, "..", "..", "package.json"), "utf8");
    process.stdout.write(`${(JSON.parse(manifest) as { version: string }).version}\n`);
    return 0;
  }
  if (name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(HELP);
    return 0;
  }
  if (name === undefined) throw new UsageError("missing COMMAND");
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) {
    const hint = name.endsWith(".gguf") ? `; did you mean 'gguf-native inspect ${name}'?` : "";
    throw new UsageError(`unknown ${name.startsWith("-") ? "option" : "command"} '${name}'${hint}`);
  }
  const { command } = await load();
  const beforeTerminator = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  if (beforeTerminator.includes("--help") || beforeTerminator.includes("-h")) {
    process.stdout.write(command.help);
    return 0;
  }
  return command.run(args);
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that stops reading, such as head, is no error. A command that has come to its end still says how it ended.
  if (error.code === "EPIPE") {
    setImmediate(() => process.exit());
  } else {
    complain(error.message);
    process.exit(1);
  }
});
// Nobody is left who could be told.
process.stderr.on("error", () => undefined);

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    const usage = error instanceof UsageError;
    complain(`${message}${usage ? " (see gguf-native --help)" : ""}`);
    process.exitCode = usage ? 2 : 1;
  },
);

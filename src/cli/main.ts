#!/usr/bin/env node
/** The `gguf-native` command. Exit codes: 0 good, 1 the file is bad, 2 wrong usage. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "./args";
import { escapeText } from "./text";

/** A command: its help, and what runs it. Returns the exit code. */
export interface Command {
  help: string;
  run(args: string[]): Promise<number>;
}

const HELP = `Usage: gguf-native COMMAND ...

  inspect FILE             what a GGUF file holds: summary, tensors, metadata
  dequantize FILE TENSOR   a tensor as numbers: a summary, .npy or .bin
  verify FILE...           check structure and values of whole files

  gguf-native COMMAND --help   options and examples of a command
  gguf-native --version

Exit codes: 0 good, 1 the file is bad, 2 wrong usage.
`;

// Loaded when they are needed: --help and --version work without the addon.
const commands: Record<string, () => Promise<{ command: Command }>> = {
  inspect: () => import("./inspect.js"),
  dequantize: () => import("./dequantize.js"),
  verify: () => import("./verify.js"),
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

// A reader that stops reading, such as head, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    const message = escapeText(error instanceof Error ? error.message : String(error));
    const usage = error instanceof UsageError;
    process.stderr.write(`gguf-native: ${message}${usage ? " (see gguf-native --help)" : ""}\n`);
    process.exitCode = usage ? 2 : 1;
  },
);

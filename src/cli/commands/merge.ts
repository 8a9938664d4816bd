/** `gguf-native merge`: a split model in one file. */
import { statSync } from "node:fs";
import { escapeText, humanBytes } from "../../describe/text";
import { mergeModel } from "../../index";
import { expectPositionals, parse } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { interruptible } from "../output/write-files";

const HELP = `Usage: gguf-native merge FILE OUT

Writes a split model as one file. FILE is any of its files; the others lie
beside it. An existing OUT is replaced once the new one is complete; other hard
links to it keep the old one. OUT cannot be one of several files of the model.

Examples:
  gguf-native merge model-00001-of-00003.gguf model.gguf
`;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { positionals } = parse(args, {});
  const [path, output] = expectPositionals(positionals, "FILE", "OUT");
  await interruptible(terminal, path, (options) => mergeModel(path, output, options));
  terminal.print([`${escapeText(output)}: ${humanBytes(statSync(output).size)}`]);
  return 0;
}

export const command: Command = { help: HELP, options: {}, run };

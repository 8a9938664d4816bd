/** `gguf-native merge`: a split model in one file. */
import { statSync } from "node:fs";
import { escapeText, humanBytes } from "../../describe/text";
import { mergeModel } from "../../index";
import { expectPositionals, parse, UsageError } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, interruptible } from "../output/write-files";

const HELP = `Usage: gguf-native merge FILE OUT [--force]

Writes a split model as one file. FILE is any of its files; the others lie
beside it. OUT appears once it is complete. Other hard links to an OUT that is
replaced keep the old one. OUT cannot be one of several files of the model.

${FORCE_HELP}
Examples:
  gguf-native merge model-00001-of-00003.gguf model.gguf
`;

const OPTIONS = FORCE_OPTION;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  if (positionals.length > 2)
    throw new UsageError("name one FILE of the model, and OUT: its others are found beside it");
  const [path, output] = expectPositionals(positionals, "FILE", "OUT");
  await interruptible(terminal, path, values.force, (options) => mergeModel(path, output, options));
  terminal.print([`${escapeText(output)}: ${humanBytes(statSync(output).size)}`]);
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

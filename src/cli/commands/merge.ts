/** `gguf-native merge`: a split model in one file. */
import { statSync } from "node:fs";
import { mergeModel } from "../../index";
import { expectPositionals, parse } from "../args";
import type { Command } from "../main";
import { writing } from "../output/files";
import { print } from "../output/terminal";
import { escapeText, humanBytes } from "../output/text";

const HELP = `Usage: gguf-native merge FILE OUT

Writes a split model as one file. FILE is any of its files; the others lie
beside it. An existing OUT is replaced once the new one is complete.

Examples:
  gguf-native merge model-00001-of-00003.gguf model.gguf
`;

async function run(args: string[]): Promise<number> {
  const { positionals } = parse(args, {});
  const [path, output] = expectPositionals(positionals, "FILE", "OUT");
  await writing(path, (options) => mergeModel(path, output, options));
  print([`${escapeText(output)}: ${humanBytes(statSync(output).size)}`]);
  return 0;
}

export const command: Command = { help: HELP, run };

/** `gguf-native split`: one model in several files. */
import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { escapeText, humanBytes } from "../../describe/text";
import { shardNumber, shardSuffix } from "../../file/shard-names";
import { splitFiles } from "../../writer/split-model";
import { byteCount, expectPositionals, parse, UsageError, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { FORCE_OPTION, inFolder, interruptible, replacedLine } from "../output/write-files";

const HELP = `Usage: gguf-native split FILE [PREFIX] --max-size SIZE | --max-tensors N
       gguf-native split FILE -o PREFIX ...

Splits a model into PREFIX-00001-of-00003.gguf and so on. The default PREFIX is
the name of FILE without its ending, and without its number where it is split
already. Where PREFIX is a folder, one that exists or PREFIX/, the files are in
that folder under that name. A missing folder is made.
The first file holds the metadata. The model opens as one from any of its files.
All files appear once they are complete. If the command is killed while they get
their names, 'gguf-native recover FILE' gives them the rest. Hard links to files
that are replaced keep the old ones.

  --max-size SIZE   the most bytes of one file: a number, or one with K, M, G or
                    T (1024-fold each); exceeded only by a tensor that is larger
  --max-tensors N   the most tensors of one file
  -o, --output PREFIX
                    the same as PREFIX after FILE
  --force           replaces files that exist already
  --dry-run         shows the files and their sizes, and writes nothing
  --json            the same as JSON

Examples:
  gguf-native split model.gguf --max-size 4G
  gguf-native split model.gguf --max-size 4G --dry-run
  gguf-native split model.gguf -o parts/ --max-tensors 128
`;

const OPTIONS = {
  output: { type: "string", short: "o" },
  "max-size": { type: "string" },
  "max-tensors": { type: "string" },
  "dry-run": { type: "boolean" },
  json: { type: "boolean" },
  ...FORCE_OPTION,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, after] = expectPositionals(positionals, "FILE", "[PREFIX]");
  if (after !== undefined && values.output !== undefined) throw new UsageError("either PREFIX or --output");
  const maxBytes = byteCount("--max-size", values["max-size"]);
  const maxTensors = wholeNumber("--max-tensors", values["max-tensors"], 1, 2 ** 31);
  if (maxBytes === undefined && maxTensors === undefined) {
    throw new UsageError("missing --max-size or --max-tensors");
  }
  const prefix = outputOf(path, after ?? values.output);
  const isDry = values["dry-run"] ?? false;
  const { force } = values;
  const files = await interruptible(terminal, path, force, (options) =>
    inFolder(isDry ? undefined : dirname(prefix), () =>
      splitFiles(path, prefix, { ...options, maxBytes, maxTensors }, isDry),
    ),
  );
  if (values.json) terminal.printJson({ path, dryRun: isDry, files });
  else {
    const lines = files.map(({ path: part, byteLength }) => `${escapeText(part)}: ${humanBytes(byteLength)}`);
    const replaced = files.flatMap((file) => replacedLine(file.path, file.replaces, force));
    terminal.print([...lines, ...(isDry ? [...replaced, "nothing was written"] : [])]);
  }
  return 0;
}

function outputOf(path: string, prefix: string | undefined): string {
  const isShard = shardNumber(path) !== undefined;
  const own = isShard ? path.slice(0, -shardSuffix(0, 1).length) : path.replace(/\.gguf$/i, "");
  if (prefix === undefined) return own;
  const isFolder = /[\\/]$/.test(prefix) || statSync(prefix, { throwIfNoEntry: false })?.isDirectory();
  return isFolder ? join(prefix, basename(own)) : prefix;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

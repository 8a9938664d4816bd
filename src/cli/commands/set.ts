/** `gguf-native set`: changes a value of a file's metadata. */

import { TYPE_NAMES } from "../../file/metadata";
import { type GgufInputType, openSync, setMetadata } from "../../index";
import { expectPositionals, parse, UsageError } from "../args";
import type { Command } from "../main";
import { writing } from "../output/files";
import { metadataText } from "../output/metadata-text";
import { print } from "../output/terminal";
import { escapeText } from "../output/text";

const HELP = `Usage: gguf-native set FILE KEY VALUE [--type TYPE] [-o OUT]
       gguf-native set FILE KEY --remove [-o OUT]

Changes, adds or removes a key of a file's metadata. Tensor data stays where it
is: where the new header fits in the room before it, only that is written;
otherwise a changed copy takes the place of the file once it is complete.

  --type TYPE        what to declare the value as: uint8 to uint64, int8 to
                     int64, float32, float64, bool, string, or an array of one,
                     such as int32[]. A key that is there keeps its type, one
                     that the specification knows gets the one it says.
  --remove           removes the key
  -o, --output OUT   writes the changed file there, and leaves FILE alone

Arrays are JSON: '["a", "b"]'. A VALUE that looks like an option goes last,
after --. Of a split model only FILE is changed.

Examples:
  gguf-native set model.gguf general.name 'My model'
  gguf-native set model.gguf llama.rope.freq_base 1e6
  gguf-native set model.gguf tokenizer.ggml.add_bos_token true --type bool
  gguf-native set model.gguf tokenizer.chat_template "$(cat chat.jinja)"
  gguf-native set model.gguf general.url --remove -o changed.gguf
  gguf-native set model.gguf --type string mine.flags -- '--fast'
`;

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(withDashes(args), {
    type: { type: "string" },
    remove: { type: "boolean" },
    output: { type: "string", short: "o" },
  });
  const { remove, output } = values;
  const type = checkType(values.type);
  if (remove && values.type !== undefined) throw new UsageError("either --remove or --type");
  const [path, key, text = ""] = remove
    ? expectPositionals(positionals, "FILE", "KEY")
    : expectPositionals(positionals, "FILE", "KEY", "VALUE");
  const before = described(path, key);
  if (remove && before === undefined) {
    print([`${escapeText(key)} is not there`]);
    return 0;
  }
  const change = remove ? undefined : { text, type };
  const { inPlace } = await writing(path, (options) =>
    setMetadata(path, [[key, change]], { ...options, output }),
  );
  const after = described(output ?? path, key);
  const where = output === undefined ? (inPlace ? "in place" : "rewritten") : `in ${output}`;
  print([
    ...(before === undefined ? [] : [`- ${escapeText(key)}  ${before}`]),
    ...(after === undefined ? [] : [`+ ${escapeText(key)}  ${after}`]),
    escapeText(`changed ${where}`),
  ]);
  return 0;
}

export const command: Command = { help: HELP, run };

/** A type as the command line has it: the name of one, for arrays with [] behind it. */
function checkType(type: string | undefined): GgufInputType | undefined {
  const names: readonly string[] = TYPE_NAMES.filter((name) => name !== "array");
  if (type !== undefined && !names.includes(type.replace(/\[\]$/, ""))) {
    const all = names.join(", ");
    throw new UsageError(`--type must be one of ${all}, or of an array such as int32[]; not '${type}'`);
  }
  return type as GgufInputType | undefined;
}

/** Lets a value be a negative number or a list ('- item'), which otherwise read as options. */
function withDashes(args: string[]): string[] {
  const value = args.findIndex((arg) => /^-+[^a-z-]|^-inf/i.test(arg));
  if (value < 0 || args.includes("--")) return args;
  return [...args.slice(0, value), ...args.slice(value + 1), "--", args[value] as string];
}

/** The type and value of a key in one line. */
function described(path: string, key: string): string | undefined {
  const file = openSync(path, { partial: true, splits: false });
  try {
    return file.metadata.has(key) ? metadataText(file.metadata, key).join("  ") : undefined;
  } finally {
    file.close();
  }
}

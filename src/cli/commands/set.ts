/** `gguf-native set`: changes a value of a file's metadata. */
import { TYPE_NAMES } from "../../file/metadata-values";
import { type GgufInputType, openSync, setMetadata } from "../../index";
import { settleModel } from "../../writer/journal";
import { expectPositionals, parse, UsageError } from "../arguments/parse";
import type { Command } from "../command";
import { metadataText } from "../output/metadata-text";
import type { Terminal } from "../output/terminal";
import { escapeText } from "../output/text";
import { interruptible } from "../output/write-files";

const HELP = `Usage: gguf-native set FILE KEY VALUE [--type TYPE] [-o OUT | --in-place]
       gguf-native set FILE KEY --remove [-o OUT | --in-place]

Changes, adds or removes a key of a file's metadata. Whoever opens FILE finds it
as before or as after, even if the command is killed: the header is changed in
place only where one write within 4096 bytes does that. Otherwise a changed copy
replaces the file once it is complete, and other hard links to FILE keep the old
one.

  --type TYPE        the type of the value: uint8 to uint64, int8 to int64,
                     float32, float64, bool, string, or an array of one, such as
                     int32[]. By default a key keeps its type, and a new one
                     gets the type that the specification has for it.
  --remove           removes the key
  -o, --output OUT   writes the changed file to OUT and leaves FILE as it is
  --in-place         changes the header in place wherever the new one fits in
                     the room before the tensor data. Who opens FILE meanwhile
                     sees a broken header. If the command is killed, 'recover
                     FILE', or the next 'set', takes the change back.

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

const OPTIONS = {
  type: { type: "string" },
  remove: { type: "boolean" },
  output: { type: "string", short: "o" },
  "in-place": { type: "boolean" },
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(withDashes(args), OPTIONS);
  const { remove, output } = values;
  // Without the option, only where that is safe.
  const inPlace = values["in-place"] ? true : undefined;
  if (inPlace && output !== undefined) throw new UsageError("either --in-place or --output");
  const type = checkType(values.type);
  if (remove && values.type !== undefined) throw new UsageError("either --remove or --type");
  const [path, key, text = ""] = remove
    ? expectPositionals(positionals, "FILE", "KEY")
    : expectPositionals(positionals, "FILE", "KEY", "VALUE");
  // An interrupted change may have left a header that cannot be read.
  await settleModel(path);
  const before = described(path, key);
  if (remove && before === undefined) {
    terminal.print([`${escapeText(key)} is not in the file`]);
    return 0;
  }
  const change = remove ? undefined : { text, type };
  const result = await interruptible(terminal, path, (options) =>
    setMetadata(path, [[key, change]], { ...options, output, inPlace }),
  );
  const after = described(output ?? path, key);
  const how =
    output !== undefined
      ? `written to ${output}`
      : result.inPlace
        ? "changed in place"
        : "replaced by a changed copy";
  terminal.print([
    ...(before === undefined ? [] : [`- ${escapeText(key)}  ${before}`]),
    ...(after === undefined ? [] : [`+ ${escapeText(key)}  ${after}`]),
    escapeText(how),
  ]);
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** Checks a type of --type: the name of one, with [] after it for arrays. */
function checkType(type: string | undefined): GgufInputType | undefined {
  const names: readonly string[] = TYPE_NAMES.filter((name) => name !== "array");
  if (type !== undefined && !names.includes(type.replace(/\[\]$/, ""))) {
    const all = names.join(", ");
    throw new UsageError(`--type must be one of ${all}, or of an array such as int32[]; not '${type}'`);
  }
  return type as GgufInputType | undefined;
}

/** Moves a value that is a negative number or a list ('- item') to the end, after "--": it is no option. */
function withDashes(args: readonly string[]): readonly string[] {
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

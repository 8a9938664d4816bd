/** `gguf-native get`: a metadata value as it is. */

import type { GgufValueType } from "../../base/metadata-values";
import { didYouMean } from "../../base/suggest";
import { counted } from "../../describe/text";
import { valueAt } from "../../file/metadata";
import { elementOf, type ValuePart, type ValuePlace, valueParts } from "../../file/value-parts";
import type { GgufMetadata } from "../../index";
import { MODEL_HELP, MODEL_OPTIONS, type OpenedModel, withPartialModel } from "../arguments/open-model";
import { expectPositionals, parse, UsageError } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { typedJson } from "../output/value-json";
import { valueLines } from "../output/value-lines";

const HELP = `Usage: gguf-native get FILE|URL KEY [options]

Prints a value of the metadata as it is, for other programs: a text, a number,
true or false. An array has a line for each element. KEY[5] is one element, the
first one is KEY[0]. FILE - is standard input. Exits with 1 where there is no
such key. Fetches only the header of a URL.

  --raw               nothing but the value: without the line feed that ends
                      it, and on a terminal without escapes
  --json              type and value, exactly, as 'inspect --json' has them
${MODEL_HELP}
Examples:
  gguf-native get model.gguf general.name
  gguf-native get model.gguf tokenizer.chat_template --raw >chat.jinja
  gguf-native get model.gguf tokenizer.ggml.tokens | grep -n hello
  gguf-native get model.gguf 'tokenizer.ggml.tokens[5]'
`;

const OPTIONS = {
  raw: { type: "boolean" },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, name] = expectPositionals(positionals, "FILE|URL", "KEY");
  if (values.raw && values.json) throw new UsageError("either --raw or --json");
  const print = async ({ file, path: shown }: OpenedModel): Promise<void> => {
    const { type, parts } = valueNamed(file.metadata, shown, name);
    if (values.json) {
      await terminal.printJsonPieces(line(typedJson(type, parts)));
      return;
    }
    const lines = valueLines(parts());
    await terminal.printBytes(values.raw && type.type !== "array" ? withoutEnd(lines) : lines, !!values.raw);
  };
  await withPartialModel(path, values, print, true);
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

interface Value {
  readonly type: GgufValueType;
  readonly parts: () => Iterable<ValuePart>;
}

/** The value of a key, or the element that brackets after it name. A key may have brackets itself. */
function valueNamed(metadata: GgufMetadata, path: string, name: string): Value {
  const [, before = name, brackets = ""] = metadata.has(name) ? [] : (/^(.*?)((?:\[\d{1,15}\])+)$/s.exec(name) ?? []);
  const place = valueAt(metadata, before) as ValuePlace | undefined;
  if (place === undefined) {
    throw new Error(`${path}: no metadata key is '${before}'${didYouMean(before, metadata.keys())}`);
  }
  let value: Value = { type: place.type, parts: () => valueParts(place) };
  for (const [bracket, index] of brackets.matchAll(/\[(\d+)\]/g)) {
    const { type, parts } = value;
    if (type.type !== "array") throw new UsageError(`'${name}': ${bracket} is for arrays, not for ${type.type}`);
    if (Number(index) >= type.length) {
      throw new UsageError(`'${name}': no ${bracket} in an array of ${counted(type.length, "element")}`);
    }
    value = elementAt(type.elementType, () => elementOf(parts(), Number(index)));
  }
  return value;
}

function elementAt(type: string, parts: Value["parts"]): Value {
  if (type !== "array") return { type: { type } as GgufValueType, parts };
  const [first] = parts() as Iterable<ValuePart & { kind: "array" }>;
  const { elementType, length } = first as ValuePart & { kind: "array" };
  return { type: { type: "array", elementType, length }, parts };
}

function* line(pieces: Iterable<string>): Generator<string, void, undefined> {
  yield* pieces;
  yield "\n";
}

/** Bytes without the last one of all. */
function* withoutEnd(pieces: Iterable<Uint8Array>): Generator<Uint8Array, void, undefined> {
  let held: Uint8Array | undefined;
  for (const piece of pieces) {
    if (held !== undefined) yield held;
    held = piece;
  }
  if (held !== undefined) yield held.subarray(0, -1);
}

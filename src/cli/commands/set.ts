/** `gguf-native set`: changes a file's metadata. */

import { TYPE_NAMES } from "../../base/metadata-values";
import { didYouMean } from "../../base/suggest";
import { metadataText } from "../../describe/metadata-text";
import { escapeText } from "../../describe/text";
import { knownKeyType } from "../../file/metadata-keys";
import { GgufError, type GgufInputType, type GgufMetadata, parse as parseGguf } from "../../index";
import { checkReplaced } from "../../writer/replaced-files";
import { type MetadataPlan, planMetadata } from "../../writer/set-metadata";
import { checkKey } from "../../writer/values";
import { checkWriteOptions } from "../../writer/write-options";
import { CHAT_TEMPLATE, type Change, jsonChanges, keysNamed, pairChanges } from "../arguments/metadata-changes";
import { expectPositionals, parse, UsageError } from "../arguments/parse";
import { specialTokens, tokenChanges } from "../arguments/special-tokens";
import { textOf } from "../arguments/text-files";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, interruptible, replacedLine } from "../output/write-files";

const HELP = `Usage: gguf-native set FILE KEY VALUE [KEY VALUE...] [options]
       gguf-native set FILE --remove KEY [options]

Changes, adds or removes keys of a file's metadata, all of them at once. Whoever
opens FILE finds it as before or as after, even if the command is killed: the
header is changed in place only where one write within 4096 bytes does that.
Otherwise a changed copy replaces the file once it is complete, and other hard
links to FILE keep the old one.

  --type TYPE         the type of the values: uint8 to uint64, int8 to int64,
                      float32, float64, bool, string, or an array of one, such
                      as int32[]. By default a key keeps its type, and a new one
                      gets the type that the specification has for it.
  --remove KEY        removes a key, or all that a glob matches (* ? [a-z]);
                      more than once for more. Without KEY, removes the keys
                      that follow FILE.
  --chat-template TEXT_FILE
                      the text of a file as tokenizer.chat_template
  --token NAME=TEXT   a special token (bos, eos, eot, unk, pad, sep ...) by the
                      text that it has in the vocabulary; more than once
  --from JSON_FILE    an object of values by key, or what 'inspect --json'
                      prints; null removes a key
  --dry-run           shows what would change, and writes nothing
  -o, --output OUT    writes the changed file to OUT and leaves FILE as it is
${FORCE_HELP}  --in-place          changes the header in place wherever the new one fits in
                      the room before the tensor data. Who opens FILE meanwhile
                      sees a broken header. If the command is killed, 'recover
                      FILE', or the next 'set', takes the change back.

Arrays are JSON: '["a", "b"]'. A VALUE that looks like an option goes last,
after --. A file named - is standard input. If a model is split, only FILE is
changed.

Examples:
  gguf-native set model.gguf general.name 'My model' general.license mit
  gguf-native set model.gguf llama.rope.freq_base 1e6 --dry-run
  gguf-native set model.gguf tokenizer.ggml.add_bos_token true --type bool
  gguf-native set model.gguf --chat-template chat.jinja
  gguf-native set model.gguf --token eos='<|im_end|>'
  gguf-native set model.gguf --remove general.url --remove 'general.source.*'
  gguf-native set model.gguf --from changes.json -o changed.gguf
  gguf-native set model.gguf --type string mine.flags -- '--fast'
`;

const TYPES: readonly string[] = TYPE_NAMES.filter((name) => name !== "array");

const OPTIONS = {
  type: { type: "string", choices: TYPES },
  remove: { type: "string", multiple: true },
  "chat-template": { type: "string" },
  token: { type: "string", multiple: true },
  from: { type: "string" },
  "dry-run": { type: "boolean" },
  output: { type: "string", short: "o" },
  "in-place": { type: "boolean" },
  ...FORCE_OPTION,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { ordered, removesKeys } = inOrder(args);
  const { values, positionals } = parse(ordered, OPTIONS);
  const { output } = values;
  // Without the option, only where that is safe.
  const inPlace = values["in-place"] ? true : undefined;
  if (inPlace && output !== undefined) throw new UsageError("either --in-place or --output");
  const type = checkType(values.type);
  const [first, ...words] = positionals;
  const [path] = expectPositionals(first === undefined ? [] : [first], "FILE");
  const removals = [...(values.remove ?? []), ...(removesKeys ? words : [])];
  const pairs = removesKeys ? [] : pairChanges(words, type);
  for (const [key] of pairs) await usage(() => checkKey(key));
  const template = values["chat-template"];
  const changes: Change[] = [
    ...(values.from === undefined ? [] : jsonChanges(values.from)),
    ...(template === undefined
      ? []
      : [[CHAT_TEMPLATE, { text: textOf("--chat-template", template), type: "string" }] as const]),
    ...pairs,
  ];
  const tokens = specialTokens(values.token);
  if (removals.length === 0 && changes.length === 0 && tokens.length === 0) throw new UsageError("missing KEY");
  if (type !== undefined && pairs.length === 0) throw new UsageError("--type is for VALUE");

  const texts = [values.from, template].flatMap((each) => (each === "-" ? "/dev/stdin" : (each ?? [])));
  const { force, "dry-run": isDry = false } = values;
  const origin = { model: [path], others: texts };
  const replaced = await checkReplaced([output ?? path], origin, isDry || (force ?? false));
  const access = isDry ? "look" : output === undefined ? "r+" : "r";
  await planMetadata(path, { access }, async (plan) => {
    const named = [...changes, ...tokenChanges(plan.metadata, tokens)];
    const { all, lines } = await describe(plan, named, removals);
    if (isDry) {
      const would = output === undefined ? [] : replacedLine(output, replaced.get(output), force);
      terminal.print([...lines, ...would, "nothing was written"]);
    } else if (all.length === 0 && output === undefined) terminal.print(lines);
    else {
      const { inPlace: isInPlace } = await interruptible(terminal, path, force, (options) =>
        plan.make(output, inPlace, checkWriteOptions(options)),
      );
      const how = isInPlace ? "changed in place" : "replaced by a changed copy";
      terminal.print([...lines, output === undefined ? how : escapeText(`written to ${output}`)]);
    }
  });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/**
 * Encodes the changes, removals first.
 * @returns them, and what to say of them: what is to be removed and not there changes nothing
 */
async function describe(
  plan: MetadataPlan,
  changes: readonly Change[],
  removals: readonly string[],
): Promise<{ all: Change[]; lines: string[] }> {
  const { metadata } = plan;
  const dropped = changes.flatMap(([key, change]) => (change === undefined ? [key] : []));
  const removed = new Set([...removals, ...dropped].flatMap((name) => keysNamed(metadata, name)));
  const all = [
    ...Array.from(removed, (key): Change => [key, undefined]),
    ...changes.filter(([, change]) => change !== undefined),
  ];
  const after = parseGguf(await usage(() => plan.encode(all)), { partial: true });
  const lines = [...new Set(all.map(([key]) => key))].flatMap((key) => [
    ...described("-", metadata, key),
    ...described("+", after.metadata, key),
    ...(after.metadata.has(key) ? newKeyNotes(metadata, key) : []),
  ]);
  after.close();
  const absent = [...removals, ...dropped].filter((name) => keysNamed(metadata, name).length === 0);
  const notes = absent.map((name) => `${name} is not in the file${didYouMean(name, metadata.keys())}`);
  return { all, lines: [...lines, ...notes.map(escapeText)] };
}

/** Runs `work`; where a value does not fit its key, that is wrong usage. */
async function usage<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, path } = error as Partial<GgufError>;
    const isValue = code === "ERR_GGUF_METADATA_TYPE" || code === "ERR_GGUF_METADATA_RANGE";
    const isKey = code === "ERR_GGUF_INVALID" && path === undefined;
    throw error instanceof GgufError && (isValue || isKey) ? new UsageError(error.message) : error;
  }
}

/** Checks a type of --type: the name of one, with [] after it for arrays. */
function checkType(type: string | undefined): GgufInputType | undefined {
  if (type !== undefined && !TYPES.includes(type.replace(/\[\]$/, ""))) {
    const all = `${TYPES.join(", ")}, or of an array such as int32[]`;
    throw new UsageError(`--type must be one of ${all}; not '${type}'${didYouMean(type, TYPES)}`);
  }
  return type as GgufInputType | undefined;
}

/**
 * The arguments with options first: a value that is a negative number or a list ('- item') is no option. --remove has a
 * value if an argument follows that is no option; otherwise it is about the keys after FILE.
 */
function inOrder(args: readonly string[]): { ordered: string[]; removesKeys: boolean } {
  const options: string[] = [];
  const others: string[] = [];
  let removesKeys = false;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string;
    const next = args[i + 1];
    if (arg === "--") {
      others.push(...args.slice(i + 1));
      break;
    }
    if (!isOption(arg)) others.push(arg);
    else if (arg === "--remove" && (next === undefined || isOption(next))) removesKeys = true;
    else {
      options.push(arg);
      if (next !== undefined && takesNext(arg)) {
        options.push(next);
        i++;
      }
    }
  }
  return { ordered: [...options, "--", ...others], removesKeys };
}

function isOption(arg: string): boolean {
  return arg.length > 1 && arg.startsWith("-") && !/^-+[^a-z-]|^-inf/i.test(arg);
}

/** Whether the argument after an option is its value. */
function takesNext(arg: string): boolean {
  return Object.entries(OPTIONS).some(([name, option]) => {
    const isIt = arg === `--${name}` || ("short" in option && arg === `-${option.short}`);
    return isIt && option.type === "string";
  });
}

/** A line with the type and value of a key, after a sign; none where the file does not have it. */
function described(sign: string, metadata: GgufMetadata, key: string): string[] {
  if (!metadata.has(key)) return [];
  return [`${sign} ${escapeText(key)}  ${metadataText(metadata, key).join("  ")}`];
}

/** A question about a key that is new, and looks like a misspelt one. */
function newKeyNotes(metadata: GgufMetadata, key: string): string[] {
  if (metadata.has(key) || knownKeyType(key) !== undefined) return [];
  const hint = didYouMean(key, metadata.keys());
  return hint === "" ? [] : [escapeText(`${key} is a new key${hint}`)];
}

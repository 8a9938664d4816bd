/** `gguf-native tokens`: the vocabulary of a model, and texts in it. */
import { basename } from "node:path";
import { globMatcher } from "../../base/glob";
import { stringText } from "../../describe/metadata-text";
import { counted, escapeText, float32Text, grouped } from "../../describe/text";
import { tokenCount, type VocabularyToken, vocabularyTokens } from "../../describe/vocabulary";
import { numberOf } from "../../file/scalars";
import type { GgufMetadata } from "../../index";
import { Tokenizer } from "../../tokenizer";
import { MODEL_HELP, MODEL_OPTIONS, type OpenedModel, withPartialModel } from "../arguments/open-model";
import { expectPositionals, parse, UsageError, wholeNumber } from "../arguments/parse";
import { textOf } from "../arguments/text-files";
import type { Command } from "../command";
import { exactJson } from "../output/json";
import { again } from "../output/listed";
import type { Terminal } from "../output/terminal";
import { differentBytes } from "../output/value-json";

const HELP = `Usage: gguf-native tokens FILE|URL [options]
       gguf-native tokens FILE|URL TEXT
       gguf-native tokens FILE|URL --decode ID...

Shows the vocabulary of a model: its kind, its special tokens, and its tokens
with their types and scores. With TEXT, shows the tokens of that text, as
llama.cpp makes them; with --decode, the text of these tokens.

  --decode            the arguments after FILE are numbers of tokens
  --special           reads names of control tokens, such as <|im_start|>, as
                      these tokens, and shows them with --decode
  --ids               only the numbers of the tokens, in a line
  --limit N           the most tokens that are listed (default 20)
  --all               lists all of them
  --filter GLOB       lists only tokens with such a text (* ? [a-z])
  --json              as JSON; the list then has all tokens without --limit
${MODEL_HELP}
A TEXT of - is standard input; one that begins with a dash goes last, after --.

Examples:
  gguf-native tokens model.gguf
  gguf-native tokens model.gguf --filter '<*>' --all
  gguf-native tokens model.gguf 'Hello world'
  gguf-native tokens model.gguf --ids - <prompt.txt
  gguf-native tokens model.gguf --decode 15043 3186
`;

const OPTIONS = {
  decode: { type: "boolean" },
  ids: { type: "boolean" },
  special: { type: "boolean" },
  limit: { type: "string" },
  all: { type: "boolean" },
  filter: { type: "string" },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

/** The most tokens of a vocabulary that texts are read with: it is in memory then. */
const MOST_TOKENS = 2 ** 22;

/** Tokens that are listed where nothing else is said. */
const DEFAULT_LISTED = 20;

/** The most bytes of a text. */
const MOST_BYTES = 2 ** 24;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const { decode, ids, json } = values;
  const [path, ...words] = decode
    ? expectPositionals(positionals, "FILE|URL", "ID...")
    : expectPositionals(positionals, "FILE|URL", "[TEXT]");
  const [given] = words;
  const isList = given === undefined;
  if (ids && (decode || isList)) throw new UsageError("--ids is for TEXT");
  if (values.special && isList) throw new UsageError("--special is for TEXT and --decode");
  if (!isList && (values.all || values.limit !== undefined || values.filter !== undefined)) {
    throw new UsageError("--all, --limit and --filter are for the list of tokens");
  }
  if (values.all && values.limit !== undefined) throw new UsageError("either --all or --limit");
  const limit = wholeNumber("--limit", values.limit, 0, 2 ** 31);
  const numbers = decode ? words.flatMap((word) => idsOf(word as string)) : [];
  const text = decode || given === undefined ? "" : given === "-" ? textOf("TEXT", "-") : given;
  if (Buffer.byteLength(text) > MOST_BYTES) throw new UsageError(`TEXT must have at most ${MOST_BYTES} bytes`);

  await withPartialModel(path, values, async (model) => {
    const { metadata } = model.file;
    if (isList) {
      const most = limit ?? (json || values.all ? Number.POSITIVE_INFINITY : DEFAULT_LISTED);
      return list(model, most, values.filter, !!json, terminal);
    }
    const count = tokenCount(metadata);
    if (count > MOST_TOKENS) throw new Error(`${model.path}: ${grouped(count)} tokens are no vocabulary`);
    const tokenizer = new Tokenizer(metadata);
    const tokens = decode ? numbers : [...tokenizer.encode(text, { special: values.special })];
    const wrong = tokens.find((id) => id >= count);
    if (wrong !== undefined) throw new UsageError(`there is no token ${wrong}: the last one is ${count - 1}`);
    const pieces = tokens.map((id) => tokenizer.piece(id));
    if (json) {
      const decoded = decode ? { text: tokenizer.decode(tokens, { special: values.special }) } : {};
      terminal.printJson({ tokens, pieces, ...decoded });
    } else if (decode) {
      terminal.print([escapeText(tokenizer.decode(tokens, { special: values.special }))]);
    } else if (ids) {
      terminal.print([tokens.join(" ")]);
    } else {
      const rows = tokens.map((id, i) => [String(id), escapeText(pieces[i] as string)]);
      terminal.print([
        terminal.heading(counted(tokens.length, "token")),
        ...(rows.length > 0 ? terminal.table(PIECE_COLUMNS, rows) : []),
      ]);
    }
  });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

const PIECE_COLUMNS = [
  { title: "id", align: "right" as const },
  { title: "text", min: 12 },
];

/** Numbers of tokens: one, or several with commas or spaces between them, as in a JSON array. */
function idsOf(word: string): number[] {
  return word
    .split(/[\s,[\]]+/)
    .filter((part) => part !== "")
    .map((part) => wholeNumber("ID", part, 0, MOST_TOKENS) as number);
}

/** What the key of a special token is called, and what it is for. */
const SPECIAL: readonly (readonly [key: string, label: string])[] = [
  ["bos", "begin"],
  ["eos", "end"],
  ["eot", "end of turn"],
  ["unknown", "unknown"],
  ["padding", "padding"],
  ["mask", "mask"],
];

async function list(
  { file, path }: OpenedModel,
  most: number,
  filter: string | undefined,
  isJson: boolean,
  terminal: Terminal,
): Promise<void> {
  const { metadata } = file;
  const count = tokenCount(metadata);
  const special = SPECIAL.flatMap(([key, label]) => {
    const id = numberOf(metadata, `tokenizer.ggml.${key}_token_id`);
    return id === undefined ? [] : [{ key, label, id }];
  });
  const matches = globMatcher(filter ?? "*");
  if (isJson) {
    await terminal.printJsonPieces(listJson(path, metadata, most, matches, special));
    return;
  }
  const wanted = new Set(special.map(({ id }) => id));
  const texts = new Map<number, string>();
  const types = new Map<string, number>();
  let found = 0;
  let hasScores = false;
  for (const token of vocabularyTokens(metadata)) {
    const text = tokenText(token);
    if (wanted.has(token.id)) texts.set(token.id, escapeText(text));
    if (token.type !== undefined) types.set(token.type, (types.get(token.type) ?? 0) + 1);
    if (!matches(text)) continue;
    if (found < most && token.score !== undefined) hasScores = true;
    found++;
  }
  const shown = Math.min(found, most);
  const hasTypes = types.size > 0;
  const rows = again(function* () {
    let left = shown;
    for (const token of vocabularyTokens(metadata)) {
      if (left === 0) return;
      const text = tokenText(token);
      if (!matches(text)) continue;
      left--;
      yield [
        String(token.id),
        ...(hasTypes ? [token.type ?? ""] : []),
        ...(hasScores ? [token.score === undefined ? "" : float32Text(token.score)] : []),
        escapeText(text),
      ];
    }
  });
  const facts: [string, string][] = [];
  for (const key of ["model", "pre"]) {
    const text = stringText(metadata, `tokenizer.ggml.${key}`);
    if (text !== undefined) facts.push([key === "model" ? "kind" : "pre-tokenizer", text]);
  }
  facts.push(["tokens", grouped(count)]);
  if (hasTypes) {
    facts.push(["types", Array.from(types, ([type, n]) => `${grouped(n)} ${type}`).join(", ")]);
  }
  for (const { label, id } of special) facts.push([label, `${id} ${texts.get(id) ?? "(no such token)"}`]);
  const columns = [
    { title: "id", align: "right" as const },
    ...(hasTypes ? [{ title: "type", paint: terminal.type }] : []),
    ...(hasScores ? [{ title: "score", align: "right" as const, drop: 0 }] : []),
    { title: "text", min: 12 },
  ];
  const all = found === count ? grouped(count) : `${grouped(found)} of ${grouped(count)}`;
  terminal.print([
    terminal.heading(escapeText(basename(path))),
    ...terminal.facts(facts),
    "",
    terminal.heading(`Tokens (${all})`),
  ]);
  if (shown > 0) await terminal.printLines(terminal.table(columns, rows));
  if (found > shown) terminal.print([`  ... ${grouped(found - shown)} more: --all lists them`]);
}

function* listJson(
  path: string,
  metadata: GgufMetadata,
  most: number,
  matches: (text: string) => boolean,
  special: readonly { key: string; id: number }[],
): Generator<string, void, undefined> {
  const member = (name: string, value: unknown): string => `  ${JSON.stringify(name)}: ${exactJson(value)},\n`;
  yield `{\n${member("path", path)}`;
  yield member("model", stringText(metadata, "tokenizer.ggml.model") ?? null);
  yield member("pre", stringText(metadata, "tokenizer.ggml.pre") ?? null);
  yield member("tokenCount", tokenCount(metadata));
  yield member("special", Object.fromEntries(special.map(({ key, id }) => [key, id])));
  yield '  "tokens": [';
  let shown = 0;
  for (const token of vocabularyTokens(metadata)) {
    const text = tokenText(token);
    if (shown >= most) break;
    if (!matches(text)) continue;
    yield `${shown++ === 0 ? "" : ","}\n    ${tokenJson(token, text)}`;
  }
  yield `${shown > 0 ? "\n  " : ""}]\n}\n`;
}

/** The text of a token; what is no UTF-8 in it is U+FFFD. A Buffer turns many short texts into strings the fastest. */
function tokenText({ bytes: { buffer, byteOffset, length } }: VocabularyToken): string {
  return Buffer.from(buffer, byteOffset, length).toString();
}

function tokenJson({ id, bytes, type, score }: VocabularyToken, text: string): string {
  return exactJson({ id, text, ...differentBytes("bytes", text, bytes), type, score });
}

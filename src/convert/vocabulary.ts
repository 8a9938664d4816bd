/** The vocabulary of a checkpoint as GGUF has it: tokens, scores, types, merges, special tokens, chat templates. */
import { GgufError } from "../base/errors";
import { quotable } from "../safetensors/json-reader";
import { SPECIAL_TOKENS, TOKEN_TYPES, tokenIdKey } from "../tokenizer/special-tokens";
import { type Architecture, type Config, type Entry, typeCount, type VocabularyKind } from "./architectures";
import { readSentencePiece, type SentencePieceModel, UNIGRAM } from "./sentence-piece-model";
import {
  type AddedToken,
  type Component,
  componentsOf,
  isAddedToken,
  MOST_TOKENS,
  type TokenizerJson,
  unigramPiecesOf,
  vocabOf,
} from "./tokenizer-json";
import { wordRuleOf } from "./word-rule";

/** The files of a vocabulary, parsed; undefined where they are missing. */
export interface VocabularyFiles {
  readonly path: string;
  readonly tokenizer: TokenizerJson | undefined;
  readonly tokenizerConfig: Config | undefined;
  readonly addedTokens: Readonly<Record<string, number>> | undefined;
  readonly sentencePiece: Uint8Array | undefined;
  /** `sentencepiece.bpe.model`. */
  readonly unigram: Uint8Array | undefined;
  readonly merges: string | undefined;
  readonly vocabularyText: string | undefined;
  readonly chatTemplate: unknown;
  /** The rule for words that the caller names, in place of the one that is found. */
  readonly wordRule: string | undefined;
}

const { normal: NORMAL, unknown: UNKNOWN, control: CONTROL } = TOKEN_TYPES;
const { user: USER_DEFINED, unused: UNUSED, byte: BYTE } = TOKEN_TYPES;

interface Token {
  text: string;
  score: number;
  type: number;
}

/** The entries of the vocabulary, and how many tokens it has; the last entry of a key counts. */
export function vocabularyEntries(
  { vocabularies = ["gpt2"], gpt2Rule = "gpt-2", vocabularyEntries: others }: Architecture,
  config: Config,
  files: VocabularyFiles,
): { entries: Entry[]; size: number } {
  for (const kind of vocabularies) {
    const made = KINDS[kind](config, files);
    if (made === undefined) continue;
    const { model, tokens, hasScores, first = [], entries = [] } = made;
    const pre = files.wordRule === undefined && made.pre === "gpt-2" ? gpt2Rule : made.pre;
    const { before = [], after = [] } = others?.(config, files.tokenizerConfig ?? {}, model) ?? {};
    const all: Entry[] = [
      ...[...before, ...first],
      ["tokenizer.ggml.model", model, "string"],
      ["tokenizer.ggml.pre", pre, "string"],
      ["tokenizer.ggml.tokens", tokens.map(({ text }) => text), "string[]"],
    ];
    if (hasScores) {
      const scores = Float32Array.from(tokens, ({ score }) => score);
      all.push(["tokenizer.ggml.scores", scores, "float32[]"]);
    }
    const types = Int32Array.from(tokens, ({ type }) => type);
    all.push(["tokenizer.ggml.token_type", types, "int32[]"], ...entries);
    all.push(...specialEntries(config, files, model === "gpt2" ? undefined : tokens.length), ...after);
    return { entries: all, size: tokens.length };
  }
  throw new GgufError(
    "ERR_GGUF_OPEN",
    "the vocabulary is missing: there is no tokenizer.json and no tokenizer.model of a kind that this architecture has",
    { path: files.path },
  );
}

interface Made {
  readonly model: string;
  readonly pre: string;
  readonly tokens: Token[];
  readonly hasScores: boolean;
  /** Before the tokens, and after them. */
  readonly first?: Entry[];
  readonly entries?: Entry[];
}

type Kind = (config: Config, files: VocabularyFiles) => Made | undefined;

const KINDS: Readonly<Record<VocabularyKind, Kind>> = {
  sentencepiece: (config, files) => ofPieces(config, files, false),
  phi3: (config, files) =>
    files.tokenizerConfig?.tokenizer_class === "GPT2Tokenizer" ? undefined : ofPieces(config, files, true),
  "llama-hf": (_config, files) => {
    const { model, decoder } = files.tokenizer ?? {};
    if (model?.type !== "BPE" || model.byte_fallback !== true || decoder?.type !== "Sequence") return undefined;
    return { model: "llama", pre: "default", hasScores: true, tokens: piecesOfJson(files) };
  },
  gpt2: (config, files) => {
    if (files.tokenizer === undefined) return undefined;
    const merges = mergesOf(files);
    const entries: Entry[] = merges.length === 0 ? [] : [["tokenizer.ggml.merges", merges, "string[]"]];
    const pre = files.wordRule ?? wordRuleOf(files.tokenizer, files.path);
    return { model: "gpt2", pre, hasScores: false, tokens: plainTokens(config, files), entries };
  },
  bert: (config, files) => {
    if (files.tokenizer === undefined && files.vocabularyText === undefined) return undefined;
    const tokens = plainTokens(config, files).map(({ text, score, type }) => {
      // Marked is what begins a word, not what continues one.
      const piece = type === CONTROL ? text : text.startsWith("##") ? text.slice(2) : `\u2581${text}`;
      return { text: piece, score, type };
    });
    return { model: "bert", pre: "jina-v2-en", hasScores: false, tokens, first: [typeCount(config)] };
  },
  unigram: (config, files) => {
    const unigram =
      files.unigram === undefined ? unigramOfJson(config, files) : unigramOfModel(config, files, files.unigram);
    if (unigram === undefined) return undefined;
    const { tokens, addsPrefix, removesSpaces, map } = unigram;
    const entries: Entry[] = [
      ["tokenizer.ggml.add_space_prefix", addsPrefix, "bool"],
      typeCount(config),
      ["tokenizer.ggml.remove_extra_whitespaces", removesSpaces, "bool"],
    ];
    if (map.length > 0) entries.push(["tokenizer.ggml.precompiled_charsmap", map, "uint8[]"]);
    return { model: "t5", pre: "default", hasScores: true, tokens, entries };
  },
};

/** Tokens that stand for ids that have none. */
function padding(config: Config, count: number, path: string, least = 0): Token[] {
  const size = Math.max(Number(config.vocab_size ?? count), least);
  if (!Number.isInteger(size) || size < 0 || size > MOST_TOKENS) {
    throw new GgufError("ERR_GGUF_INVALID", `vocab_size is ${size}`, { path });
  }
  return Array.from({ length: size }, (_, i) => ({ text: `[PAD${i}]`, score: -10000, type: UNUSED }));
}

function looksSpecial(text: string): boolean {
  return /^(<pad>|<mask>|<2mass>|\[@BOS@\])$/.test(text) || /^(<\|.*\|>|<\uff5c.*\uff5c>|<unused.*>)$/s.test(text);
}

/** A token that is found in texts before they are split. */
function added({ content, special }: Pick<AddedToken, "content" | "special">, score: number): Token {
  if (special || looksSpecial(content)) return { text: content, score, type: CONTROL };
  return { text: content.replaceAll("\u2581", " "), score, type: USER_DEFINED };
}

/** Tokens of byte-level BPE and of WordPiece. */
function plainTokens(config: Config, files: VocabularyFiles): Token[] {
  const { tokenizer, tokenizerConfig, vocabularyText, path } = files;
  const lines = vocabularyText?.replace(/\n$/, "").split(/\r?\n/) ?? [];
  const vocab = vocabOf(tokenizer, path) ?? Object.fromEntries(lines.map((line, i) => [line, i]));
  const ids = Object.entries(vocab);
  const tokens = padding(config, ids.length, path);
  const put = (id: number, token: Token): void => {
    if (!(id in tokens)) {
      const detail = `token ${id}, '${quotable(token.text)}', is beyond vocab_size, ${tokens.length}`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path });
    }
    tokens[id] = token;
  };
  const special = specialTexts(tokenizerConfig);
  for (const [text, id] of ids) put(id, { text, score: 0, type: special.has(text) ? CONTROL : NORMAL });
  const own =
    tokenizer?.added_tokens ??
    lines.flatMap((content, id) =>
      /^\[(PAD|UNK|CLS|SEP|MASK)\]$/.test(content) ? [{ content, id, special: true }] : [],
    );
  for (const token of own) put(token.id, added(token, 0));
  return tokens;
}

function mergesOf({ tokenizer, merges }: VocabularyFiles): string[] {
  const given = tokenizer?.model?.merges ?? [];
  // A space in a part is written as that byte is in byte-level vocabularies.
  if (given.length > 0) {
    return given.map((each) =>
      typeof each === "string" ? each : each.map((part) => part.replaceAll(" ", "\u0120")).join(" "),
    );
  }
  const lines = (merges ?? "").split("\n").map((line) => line.trim());
  return lines.slice(lines[0]?.startsWith("#") ? 1 : 0).filter((line) => /^\S+ \S+$/.test(line));
}

/**
 * The pieces of a `tokenizer.model`, and what other files add.
 * @param isPlain whether that is taken as it is, also from tokenizer.json
 */
function ofPieces(config: Config, files: VocabularyFiles, isPlain: boolean): Made | undefined {
  if (files.sentencePiece === undefined) return undefined;
  const path = `${files.path}tokenizer.model`;
  const { pieces } = readSentencePiece(files.sentencePiece, MOST_TOKENS, path);
  const tokens = padding(config, pieces.length, files.path);
  if (pieces.length > tokens.length) {
    const detail = `it has ${pieces.length} pieces, but vocab_size is ${tokens.length}`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path });
  }
  const plain = ({ content: text, special }: Omit<AddedToken, "id">): Token => {
    return { text, score: -1000, type: special ? CONTROL : USER_DEFINED };
  };
  // What others add beyond that is left out: Gemma names the tokens of larger models.
  const put = (id: number, token: Token): void => {
    if (Number.isInteger(id) && id in tokens) tokens[id] = token;
  };
  for (const [id, piece] of pieces.entries()) put(id, { ...piece });
  for (const [text, id] of Object.entries(files.addedTokens ?? {})) {
    put(id, { text, score: -1000, type: USER_DEFINED });
  }
  for (const [id, token] of Object.entries(Object(files.tokenizerConfig?.added_tokens_decoder))) {
    if (isAddedToken(token)) put(Number(id), isPlain ? plain(token) : added(token, -1000));
  }
  if (isPlain) for (const token of files.tokenizer?.added_tokens ?? []) put(token.id, plain(token));
  return { model: "llama", pre: "default", hasScores: true, tokens };
}

type Unigram = Omit<SentencePieceModel, "pieces" | "kind"> & { readonly tokens: Token[] };

/** `sentencepiece.bpe.model`: what XLM-RoBERTa makes of its numbers is other tokens at the beginning, and a gap at the end. */
function unigramOfModel(config: Config, files: VocabularyFiles, bytes: Uint8Array): Unigram {
  const path = `${files.path}sentencepiece.bpe.model`;
  const { pieces, kind, ...normalizer } = readSentencePiece(bytes, MOST_TOKENS, path);
  if (kind !== UNIGRAM) {
    const detail = "it is no model of the kind unigram, which this architecture has";
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path });
  }
  const all = padding(config, pieces.length, files.path, pieces.length);
  for (const [id, piece] of pieces.entries()) all[id] = { ...piece };
  const first = ["<s>", "<pad>", "</s>", "<unk>"].map((text) => ({
    ...{ text, score: 0, type: text === "<unk>" ? UNKNOWN : CONTROL },
  }));
  const tokens = [...first, ...all.slice(3, -1)];
  const mask = 250001; // which only nomic-bert-moe puts back
  if (config.moe_every_n_layers && mask in tokens) tokens[mask] = { text: "<mask>", score: 0, type: CONTROL };
  return { tokens, ...normalizer };
}

/** The same as a `tokenizer.json`; undefined for one of another kind. */
function unigramOfJson(config: Config, files: VocabularyFiles): Unigram | undefined {
  const { tokenizer, tokenizerConfig, path } = files;
  const pieces = unigramPiecesOf(tokenizer, path);
  if (pieces === undefined) return undefined;
  const tokens = padding(config, pieces.length, path, pieces.length);
  for (const [id, [text, score]] of pieces.entries()) tokens[id] = { text, score, type: NORMAL };
  const special = specialTexts(tokenizerConfig);
  const own = tokenizer?.added_tokens ?? [];
  for (const { id, content, special: isSpecial } of own) {
    const token = id < pieces.length ? tokens[id] : undefined;
    if (token !== undefined) token.type = isSpecial || special.has(content) ? CONTROL : USER_DEFINED;
  }
  const unknown = own.find(({ content }) => content === tokenizerConfig?.unk_token)?.id;
  const token = tokens[unknown ?? Number(tokenizer?.model?.unk_id ?? 3)];
  if (token !== undefined) token.type = UNKNOWN;
  const map = (tokenizer?.normalizer as Component | undefined)?.precompiled_charsmap;
  return {
    tokens,
    addsPrefix: tokenizerConfig?.add_prefix_space !== false,
    removesSpaces: tokenizerConfig?.clean_up_tokenization_spaces === true,
    map: typeof map === "string" ? Uint8Array.from(Buffer.from(map, "base64")) : new Uint8Array(),
  };
}

/** The texts of special tokens that the configuration names. */
function specialTexts(tokenizerConfig: Config | undefined): Set<unknown> {
  const special = new Set<unknown>();
  for (const name of SPECIAL_TOKENS) special.add(contentOf(tokenizerConfig?.[`${name}_token`]));
  for (const name of ["additional_special_tokens", "extra_special_tokens"]) {
    const others = tokenizerConfig?.[name];
    if (Array.isArray(others)) for (const each of others) special.add(contentOf(each));
  }
  return special;
}

/** The pieces of a `tokenizer.json` that was made of a SentencePiece model: their scores are lost. */
function piecesOfJson({ tokenizer, tokenizerConfig, path }: VocabularyFiles): Token[] {
  const special = specialTexts(tokenizerConfig);
  const ids = Object.entries(vocabOf(tokenizer, path) ?? {}).sort(([, a], [, b]) => a - b);
  const tokens: Token[] = [];
  for (const [text, id] of ids) {
    if (id !== tokens.length) {
      const detail = `there must be one token with the number ${tokens.length} in model.vocab of tokenizer.json`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path });
    }
    const type = /^<0x[\da-f]{2}>$/i.test(text) ? BYTE : special.has(text) ? CONTROL : NORMAL;
    tokens.push({ text, score: -1000, type });
  }
  const base = tokens.length;
  const others = [...(tokenizer?.added_tokens ?? [])].sort((a, b) => a.id - b.id);
  for (const { id, content } of others) {
    if (id >= base) tokens.push({ text: content, score: -1000, type: special.has(content) ? CONTROL : USER_DEFINED });
  }
  return tokens;
}

/** A token is named by its text, or by an object with that. */
function contentOf(token: unknown): string | undefined {
  const content = typeof token === "object" && token !== null ? (token as Partial<AddedToken>).content : token;
  return typeof content === "string" ? content : undefined;
}

/** Ids of special tokens, whether they are added to texts, chat templates, and what normalizers do. */
function specialEntries(config: Config, files: VocabularyFiles, size: number | undefined): Entry[] {
  const { tokenizer, tokenizerConfig } = files;
  const names = [...SPECIAL_TOKENS];
  const token: Record<string, unknown> = {};
  for (const name of names) token[name] = tokenizerConfig?.[`${name}_token`];
  const adds = new Map<string, boolean>();
  if (tokenizer !== undefined) {
    token.bos ??= token.cls;
    token.eos ??= token.sep;
    for (const processor of componentsOf(tokenizer.post_processor, "processors")) {
      readProcessor(processor, { names, token, adds, hasConfig: tokenizerConfig !== undefined });
    }
  }
  const ids = new Map<string, number>();
  const setId = (name: string, id: unknown): void => {
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || ids.has(name)) return;
    if (size === undefined || id < size) ids.set(name, id);
  };
  const entries: Entry[] = [];
  if (tokenizerConfig !== undefined) {
    for (const name of names) {
      const says = tokenizerConfig[`add_${name}_token`];
      if (typeof says === "boolean" && !adds.has(name)) adds.set(name, says);
      const text = contentOf(token[name]);
      setId(name, tokenizer?.added_tokens?.find(({ content }) => content === text)?.id);
    }
  }
  for (const name of names) setId(name, config[`${name}_token_id`]);
  ids.delete("cls"); // which has no key
  for (const [name, id] of ids) entries.push([tokenIdKey(name), id, "uint32"]);
  for (const [name, value] of adds) {
    if (["bos", "eos", "sep"].includes(name)) entries.push([`tokenizer.ggml.add_${name}_token`, value, "bool"]);
  }
  if (tokenizerConfig !== undefined)
    entries.push(...templateEntries(tokenizerConfig.chat_template ?? files.chatTemplate));
  for (const normalizer of componentsOf(tokenizer?.normalizer, "normalizers")) {
    const { type, lowercase, strip_accents: strip } = normalizer;
    const isBert = type === "BertNormalizer";
    const flags = {
      lowercase: isBert ? lowercase : type === "Lowercase",
      strip_accents: isBert ? strip : type === "StripAccents",
    };
    for (const [key, value] of Object.entries(flags)) {
      if (value === true || (isBert && value === false))
        entries.push([`tokenizer.ggml.normalizer.${key}`, value, "bool"]);
    }
  }
  return entries;
}

/** What is found out about special tokens. */
interface Special {
  readonly names: string[];
  /** What the configuration has, by name: a text, or an object with one, which llama.cpp's converter takes for another token. */
  readonly token: Record<string, unknown>;
  /** Whether they are added to texts. */
  readonly adds: Map<string, boolean>;
  /** Whether there is a `tokenizer_config.json`. */
  readonly hasConfig: boolean;
}

/** What a post-processor adds to a text; it may know special tokens that the configuration does not name. */
function readProcessor(processor: Component, special: Special): void {
  const { token, adds } = special;
  if (processor.type === "ByteLevel") {
    if (!adds.has("bos")) adds.set("bos", false);
    if (!adds.has("eos")) adds.set("eos", false);
  } else if (processor.type === "RobertaProcessing") {
    for (const name of ["bos", "eos", "sep"]) adds.set(name, true);
    token.cls ??= (processor.cls as [string] | null | undefined)?.[0] ?? token.bos;
    token.sep ??= (processor.sep as [string] | null | undefined)?.[0] ?? token.eos;
  } else if (processor.type === "TemplateProcessing") readTemplate(processor, special);
}

/** A template: special tokens before, after and between texts. */
function readTemplate(processor: Component, { names, token, adds, hasConfig }: Special): void {
  type Part = { SpecialToken?: { id?: string }; Sequence?: { id?: string } } | undefined;
  const listOf = (value: unknown): readonly Part[] => (Array.isArray(value) ? value : []);
  const [single, pair] = [listOf(processor.single), listOf(processor.pair)];
  const specialOf = (part: Part): string | undefined => part?.SpecialToken?.id;
  const first = single.length > 1 ? specialOf(single[0]) : undefined;
  const last = single.length > 1 ? specialOf(single.at(-1)) : undefined;
  if (first !== undefined) {
    if (!hasConfig) token.bos = first;
    else if (first !== token.bos && first !== token.cls) {
      token.bos ??= first;
      token.cls ??= first;
    }
    adds.set("bos", first === token.bos || first === token.cls);
  }
  if (last !== undefined) {
    if (hasConfig && last !== token.eos) {
      // What ended texts is the end of a turn, then.
      const other = ["eot", "eom"].find((name) => !names.includes(name));
      if (other !== undefined) {
        names.push(other);
        token[other] = token.eos;
      }
    }
    token.eos = last;
    adds.set("eos", true);
  }
  const begin = first !== undefined && specialOf(pair[0]) === first ? 1 : 0;
  const end = last !== undefined && specialOf(pair.at(-1)) === last ? -1 : pair.length;
  const inner = pair.slice(begin, end);
  const between = inner.slice(1, -1).map(specialOf);
  if (inner[0]?.Sequence?.id !== "A" || inner.at(-1)?.Sequence?.id !== "B" || between.length === 0) return;
  const separates = (name: string | undefined): boolean =>
    name !== undefined && (name === token.sep || name === token.eos);
  const addsSep = (separates(between[0]) && last === undefined) || (between.length === 2 && separates(between[1]));
  adds.set("sep", addsSep);
  if (addsSep) token.sep ??= token.eos;
}

function templateEntries(template: unknown): Entry[] {
  if (typeof template === "string") return [["tokenizer.chat_template", template, "string"]];
  if (!Array.isArray(template)) return [];
  const named: { name: string; template: string }[] = template.filter(
    (each) => typeof each?.name === "string" && typeof each?.template === "string",
  );
  const others = named
    .filter(({ name }) => name !== "default")
    .map(({ name, template }) => ({ name: name.replaceAll(/[^a-zA-Z0-9_]/g, "_"), template }));
  const entries: Entry[] = others.map(({ name, template }) => [`tokenizer.chat_template.${name}`, template, "string"]);
  const main = named.find(({ name }) => name === "default");
  if (others.length > 0) {
    const names = others.map(({ name }) => name);
    entries.push(["tokenizer.chat_templates", names, "string[]"]);
  }
  if (main !== undefined) entries.push(["tokenizer.chat_template", main.template, "string"]);
  return entries;
}

/**
 * `gguf-native/tokenizer`: converts text to tokens and back, with the vocabulary that is in a model's metadata. The tokens
 * are those of llama.cpp, with which models are run, or those that the model was trained with.
 *
 * Seven kinds of vocabulary are known, which `tokenizer.ggml.model` names: `llama` (SentencePiece's pieces with scores),
 * `gpt2` (byte-level BPE; `tokenizer.ggml.pre` names how text is split into words before), `gemma4` (the same on text in place
 * of bytes), `bert` (WordPiece), `t5` (SentencePiece's unigram models), `rwkv` and `plamo2`.
 */
import { checkBoolean, checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import { Decoder, utf8 } from "../base/text-decoder";
import type { GgufMetadata } from "../file/metadata";
import { byteLevelEncoding } from "./byte-level";
import { type Encoding, type Normalization, Vocabulary } from "./encoding";
import { plamo2Encoding, rwkvEncoding } from "./plain-pieces";
import { sentencePieceEncoding } from "./sentence-piece";
import { defaultTokenId, TOKEN_TYPES, tokenIdKey } from "./special-tokens";
import { unigramEncoding } from "./unigram";
import { wordPieceEncoding } from "./word-piece";
import { wordRule } from "./word-rules";

/** Options of {@link Tokenizer}. */
export interface TokenizerOptions {
  /**
   * How texts are prepared: as llama.cpp does (default), or as the model's own tokenizer does, with which it was trained. These
   * differ for vocabularies of the kinds `bert` (marks, Hangul, words of more than 100 characters) and `t5` (white space, characters
   * that are replaced), and for the rules of words of Qwen (`model` composes characters: NFC).
   */
  normalization?: Normalization | undefined;
}

const TOKENIZER_OPTIONS: OptionNames<TokenizerOptions> = { normalization: true };

/** Options of {@link Tokenizer.encode}. */
export interface EncodeOptions {
  /**
   * Whether names of control tokens in the text, such as `<|im_start|>`, become these tokens. By default they are ordinary
   * text, so that nothing a user types can end a message. User-defined tokens are found in any case.
   */
  special?: boolean | undefined;
  /** Whether the token that begins a text comes first. Default: as the model wants it. */
  bos?: boolean | undefined;
  /** Whether the token that ends a text comes last. Default: as the model wants it. */
  eos?: boolean | undefined;
}

const ENCODE_OPTIONS: OptionNames<EncodeOptions> = { special: true, bos: true, eos: true };

/** Options of {@link Tokenizer.decode} and {@link Tokenizer.decoder}. */
export interface DecodeOptions {
  /** Whether control tokens become their names, such as `<|im_start|>`. By default they have no text. */
  special?: boolean | undefined;
}

const DECODE_OPTIONS: OptionNames<DecodeOptions> = { special: true };

/** Tokens that end a text, whatever the metadata says: llama.cpp knows them by these names. They are control tokens. */
const ENDS = new Set([
  ...["</s>", "<eos>", "[EOS]", "<EOT>", "_<EOT>", "[EOT]", "[e~[", "<turn|>", "<|tool_response>"],
  ...["<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>"],
  ...["<|call|>", "<|calls|>", "<|flush|>", "<end_of_turn>", "<end_of_utterance>", "<｜end▁of▁sentence｜>"],
]);

/** Looks at the first character before, <, [ or _: a set has to look at all of them. */
function isEndName(text: string): boolean {
  const first = text.charCodeAt(0);
  return (first === 0x3c || first === 0x5b || first === 0x5f) && ENDS.has(text);
}

/** In Phi 3, white space after these tokens belongs to them, but for some. */
const TAKES_SPACE = /phi-?3/i;
const TAKE_NO_SPACE = new Set(["<unk>", "<s>", "<|endoftext|>"]);
const LEADING_SPACE = /^[ \t-\r]+/;

/** What the kinds of vocabulary differ in. */
interface Kind {
  encoding: Encoding;
  /** The tokens at the beginning and at the end of a text, and whether they are there. */
  begin: number | undefined;
  end: number | undefined;
  addsBegin: boolean;
  addsEnd: boolean;
  /** What is put before a text. */
  prefix: string;
}

/** A token whose text is found in texts before anything else is done with them. */
interface Whole {
  id: number;
  text: string;
  isControl: boolean;
  /** Whether white space after it belongs to it. */
  takesSpace: boolean;
}

/** Converts text to tokens and back, with the vocabulary of a model. */
export class Tokenizer {
  readonly #kind: Kind;
  readonly #pieces: readonly string[];
  readonly #types: ArrayLike<number | bigint>;
  readonly #ends: ReadonlySet<number>;
  /** Tokens that are found in texts, the longest first. */
  readonly #wholes: readonly Whole[];

  /**
   * @param metadata that of a model, or of its first part
   * @throws TypeError ERR_INVALID_ARG_TYPE for anything else; ERR_INVALID_ARG_VALUE for another normalization
   * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for another kind of vocabulary, or a rule for words that is not known;
   *   ERR_GGUF_INVALID for one that lacks a part; ERR_GGUF_METADATA_TYPE for a part of the wrong type
   */
  constructor(metadata: GgufMetadata, options?: TokenizerOptions) {
    if (typeof metadata?.strings !== "function")
      throw invalidArgType("metadata", "an instance of GgufMetadata", metadata);
    const { normalization = "llama.cpp" } = checkOptions(options, TOKENIZER_OPTIONS);
    if (normalization !== "llama.cpp" && normalization !== "model")
      throw invalidArgValue("options.normalization", "must be one of: 'llama.cpp', 'model'", normalization);
    const vocabulary = new Vocabulary(metadata, normalization);
    const { tokens } = vocabulary;
    this.#pieces = tokens;
    const types = metadata.numbers("tokenizer.ggml.token_type") ?? [];
    this.#types = types;
    this.#kind = kindOf(vocabulary);
    const takesSpace = TAKES_SPACE.test(metadata.string("general.name") ?? "");
    const wholes: Whole[] = [];
    const ends: number[] = [];
    for (let id = 0; id < tokens.length; id++) {
      const text = tokens[id] as string;
      const type = Number(types[id]);
      const isEnd = isEndName(text);
      if (isEnd) ends.push(id);
      const isControl = isEnd || type === TOKEN_TYPES.control || type === TOKEN_TYPES.unknown;
      if (text === "" || !(isControl || type === TOKEN_TYPES.user)) continue;
      wholes.push({ id, text, isControl, takesSpace: takesSpace && !TAKE_NO_SPACE.has(text) });
    }
    this.#ends = endsOf(vocabulary, ends);
    this.#wholes = wholes.sort((a, b) => b.text.length - a.text.length);
  }

  /** The number of tokens. */
  get size(): number {
    return this.#pieces.length;
  }

  /**
   * The tokens of a text.
   *
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_INVALID where the vocabulary lacks a byte of the text, or the token that is asked for
   */
  encode(text: string, options?: EncodeOptions): Int32Array {
    if (typeof text !== "string") throw invalidArgType("text", "of type string", text);
    const given = checkOptions(options, ENCODE_OPTIONS);
    const special = checkBoolean("options.special", given.special, false);
    const { encoding, begin, end, addsBegin, addsEnd } = this.#kind;
    const bos = checkBoolean("options.bos", given.bos, addsBegin && begin !== undefined);
    const eos = checkBoolean("options.eos", given.eos, addsEnd && end !== undefined);
    const tokens = bos ? [known("begins", begin)] : [];
    // Halves of characters have no bytes.
    for (const part of this.#parts(text.replace(/\p{Surrogate}/gu, "\ufffd"), special)) {
      if (typeof part === "string") encoding.encode(part, tokens);
      else tokens.push(part);
    }
    if (eos) tokens.push(known("ends", end));
    return new Int32Array(tokens);
  }

  /**
   * The text of tokens. Bytes that are no UTF-8 become U+FFFD. What `encode` adds before a text, such as a space, is left
   * out. docs/tokenizer.md says which texts come back as they were.
   *
   * @throws TypeError ERR_INVALID_ARG_TYPE for what is no array of numbers
   * @throws GgufError ERR_GGUF_RANGE for a number that no token has
   */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string {
    if (typeof ids !== "object" || typeof ids?.length !== "number")
      throw invalidArgType("ids", "an array of numbers", ids);
    const next = this.decoder(options);
    return Array.from(ids, (id) => next(checkId("ids", id))).join("") + next();
  }

  /**
   * A function that converts one token after the other to text, as a model writes them. It returns characters once all of
   * their bytes are there. Called without a token, it ends the text: it returns U+FFFD if the last character lacks bytes, else
   * "". All that it returns is what {@link decode} gives: so a text that continues another one begins with the tokens of that.
   * It throws as `decode` does.
   */
  decoder(options?: DecodeOptions): (id?: number) => string {
    const bytesOf = this.#bytes(options);
    const { prefix } = this.#kind;
    const makeDecoder = () => new Decoder("utf-8", { ignoreBOM: true });
    let decoder = makeDecoder();
    let isFirst = prefix !== "";
    return (id) => {
      if (id === undefined) {
        const rest = decoder.decode();
        decoder = makeDecoder();
        isFirst = prefix !== "";
        return rest;
      }
      const text = decoder.decode(bytesOf(id), { stream: true });
      if (!isFirst || text === "") return text;
      isFirst = false;
      return text.startsWith(prefix) ? text.slice(prefix.length) : text;
    };
  }

  /**
   * Whether a token marks the end of what a model writes.
   *
   * @throws TypeError ERR_INVALID_ARG_TYPE for what is no number
   */
  isEnd(id: number): boolean {
    return this.#ends.has(checkId("id", id));
  }

  /**
   * What stands for a token in the vocabulary; "" where there is no such token.
   *
   * @throws TypeError ERR_INVALID_ARG_TYPE for what is no number
   */
  piece(id: number): string {
    return this.#pieces[checkId("id", id)] ?? "";
  }

  /**
   * The bytes that a token stands for in a text; none for a control token, unless its name is asked for. The bytes of a
   * character may be in several tokens.
   *
   * @throws TypeError ERR_INVALID_ARG_TYPE for what is no number
   * @throws GgufError ERR_GGUF_RANGE for a number that no token has
   */
  bytes(id: number, options?: DecodeOptions): Uint8Array {
    return this.#bytes(options)(id);
  }

  #bytes(options: DecodeOptions | undefined): (id: number) => Uint8Array {
    const { special } = checkOptions(options, DECODE_OPTIONS);
    const names = checkBoolean("options.special", special, false);
    return (id) => {
      const piece = this.#pieces[checkId("id", id)];
      if (piece === undefined) {
        const detail = `there is no token ${id}: the vocabulary has ${this.#pieces.length}`;
        throw new GgufError("ERR_GGUF_RANGE", detail);
      }
      if (this.#isControl(id)) return names ? utf8(piece) : NO_BYTES;
      return this.#typeOf(id) === TOKEN_TYPES.user ? utf8(piece) : this.#kind.encoding.bytes(id);
    };
  }

  #typeOf(id: number): number {
    return Number(this.#types[id]);
  }

  /** Whether a token is no text: a control token, or the unknown one. */
  #isControl(id: number): boolean {
    const type = this.#typeOf(id);
    return type === TOKEN_TYPES.control || type === TOKEN_TYPES.unknown || isEndName(this.#pieces[id] as string);
  }

  /** A text, cut at the tokens that are found in it before anything else is done. */
  #parts(text: string, special: boolean): (string | number)[] {
    let parts: (string | number)[] = text === "" ? [] : [text];
    for (const whole of this.#wholes) {
      if ((whole.isControl && !special) || !text.includes(whole.text)) continue;
      parts = parts.flatMap((part) => (typeof part === "string" ? separated(part, whole) : [part]));
    }
    return parts;
  }
}

const NO_BYTES = new Uint8Array(0);

/** The kind of a vocabulary. @throws GgufError */
function kindOf(vocabulary: Vocabulary): Kind {
  const { metadata, tokens } = vocabulary;
  const name = metadata.string("tokenizer.ggml.model");
  const idOf = (token: string): number | undefined => {
    const id = metadata.number(tokenIdKey(token)) ?? defaultTokenId(name, token);
    return id === undefined || tokens[id] === undefined ? undefined : id;
  };
  const adds = (token: string, otherwise: boolean): boolean =>
    metadata.boolean(`tokenizer.ggml.add_${token}_token`) ?? otherwise;
  switch (name) {
    case "llama": {
      const prefix = (metadata.boolean("tokenizer.ggml.add_space_prefix") ?? true) ? " " : "";
      const encoding = sentencePieceEncoding(vocabulary, prefix);
      const ids = { begin: idOf("bos"), end: idOf("eos") };
      return { encoding, ...ids, addsBegin: adds("bos", true), addsEnd: adds("eos", false), prefix };
    }
    case "gpt2":
    case "gemma4": {
      const rule = wordRule(name === "gemma4" ? name : (metadata.string("tokenizer.ggml.pre") ?? "default"));
      const encoding = byteLevelEncoding(vocabulary, rule);
      const ids = { begin: idOf("bos"), end: idOf("eos") };
      // For Gemma 4 and BERT, llama.cpp ignores what files say: a converter is wrong about some.
      const addsBegin = name === "gemma4" || adds("bos", rule.addsBegin ?? false);
      return { encoding, ...ids, addsBegin, addsEnd: adds("eos", false), prefix: "" };
    }
    case "bert": {
      const ids = { begin: idOf("bos"), end: idOf("sep") };
      return { encoding: wordPieceEncoding(vocabulary), ...ids, addsBegin: true, addsEnd: true, prefix: " " };
    }
    case "t5": {
      const prefix = metadata.boolean("tokenizer.ggml.add_space_prefix") ? " " : "";
      const ids = { begin: idOf("bos"), end: idOf("eos") };
      return {
        encoding: unigramEncoding(vocabulary, prefix),
        ...ids,
        ...{ addsBegin: adds("bos", false), addsEnd: adds("eos", true) },
        prefix: " ",
      };
    }
    case "rwkv":
    case "plamo2": {
      // llama.cpp puts nothing around these texts, whatever files say.
      const encoding = (name === "rwkv" ? rwkvEncoding : plamo2Encoding)(vocabulary);
      return { encoding, begin: idOf("bos"), end: idOf("eos"), addsBegin: false, addsEnd: false, prefix: "" };
    }
    default: {
      const found = name === undefined ? "names no kind (tokenizer.ggml.model)" : `is of the kind '${name}'`;
      const detail = `the vocabulary ${found}, and known are llama, gpt2, bert, t5, gemma4, rwkv and plamo2`;
      throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail);
    }
  }
}

function checkId(name: string, id: unknown): number {
  if (typeof id === "number") return id;
  throw invalidArgType(name, "of type number", id);
}

function known(what: string, id: number | undefined): number {
  if (id !== undefined) return id;
  throw new GgufError("ERR_GGUF_INVALID", `the vocabulary has no token that ${what} a text`);
}

/** The tokens that end a text; `known` are those whose names say so. */
function endsOf({ metadata, tokens }: Vocabulary, known: readonly number[]): ReadonlySet<number> {
  const named = ["eos", "eot", "eom"].flatMap((name) => metadata.number(tokenIdKey(name)) ?? []);
  const names = new Set(known.map((id) => tokens[id]));
  // Where these two end a text, <|end|> ends only a part of it.
  const isPart = names.has("<|return|>") && names.has("<|call|>");
  return new Set([...named, ...known.filter((id) => !(isPart && tokens[id] === "<|end|>"))]);
}

/** The pieces of a text between those that equal a token, and the token in place of these. */
function separated(text: string, { id, text: part, takesSpace }: Whole): (string | number)[] {
  return text.split(part).flatMap((piece, i) => {
    const rest = takesSpace && i > 0 ? piece.replace(LEADING_SPACE, "") : piece;
    return [...(i === 0 ? [] : [id]), ...(rest === "" ? [] : [rest])];
  });
}

/** Vocabularies of the kind `t5`, SentencePiece's unigram models: of all ways to write a text in pieces, that with the most score. */
import { GgufError } from "../base/errors";
import { Decoder, utf8 } from "../base/text-decoder";
import type { GgufMetadata } from "../file/metadata";
import { bytePieces, type Encoding, missing, SPACE, type Vocabulary, withVisibleSpaces } from "./encoding";
import { Pieces } from "./pieces";
import { TOKEN_TYPES, tokenIdKey } from "./special-tokens";

/** By how much an unknown character scores less than the worst piece. */
const UNKNOWN_PENALTY = 10;

export function unigramEncoding(vocabulary: Vocabulary, prefix: string): Encoding {
  const { metadata, tokens, normalization } = vocabulary;
  const scores = metadata.numbers("tokenizer.ggml.scores");
  if (scores === undefined) throw missing("tokenizer.ggml.scores");
  const types = metadata.numbers("tokenizer.ggml.token_type") ?? [];
  const unknown = metadata.number(tokenIdKey("unk")) ?? 2;
  const scoreOf = (id: number): number => (Number(types[id]) === TOKEN_TYPES.user ? 0 : Number(scores[id]));
  let least = Number.POSITIVE_INFINITY;
  const pieces = new Pieces(tokens, (id) => {
    const type = Number(types[id] ?? TOKEN_TYPES.normal);
    if (type === TOKEN_TYPES.normal) least = Math.min(least, scoreOf(id));
    return type !== TOKEN_TYPES.control && type !== TOKEN_TYPES.unknown;
  });
  const unknownScore = least - UNKNOWN_PENALTY;

  /** Appends the pieces of the best way: of each end the best piece there, in the end followed back. */
  const addBest = (text: string, found: number[]): void => {
    const best = new Float64Array(text.length + 1).fill(Number.NEGATIVE_INFINITY);
    const begins = new Int32Array(text.length + 1);
    const last = new Int32Array(text.length + 1);
    best[0] = 0;
    const offer = (begin: number, end: number, id: number, score: number): void => {
      const sum = (best[begin] as number) + score;
      if (!(sum > (best[end] as number))) return;
      best[end] = sum;
      begins[end] = begin;
      last[end] = id;
    };
    for (let begin = 0, next = 0; begin < text.length; begin = next) {
      next = begin + ((text.codePointAt(begin) as number) > 0xffff ? 2 : 1);
      let isKnown = false;
      pieces.forEachAt(text, begin, (id, length) => {
        offer(begin, begin + length, id, scoreOf(id));
        isKnown ||= begin + length === next;
      });
      if (!isKnown) offer(begin, next, unknown, unknownScore);
    }
    const backwards: number[] = [];
    for (let end = text.length; end > 0; end = begins[end] as number) {
      const id = last[end] as number;
      // What is unknown in a row is one token.
      if (id !== unknown || backwards.at(-1) !== unknown) backwards.push(id);
    }
    for (const id of backwards.reverse()) found.push(id);
  };
  const { whole, shortest } = replacementsOf(metadata);
  let bytesOf: Encoding["bytes"] | undefined; // when it is first asked for: embedders never do
  const merges = metadata.boolean("tokenizer.ggml.remove_extra_whitespaces") ?? false;
  return {
    encode(text, found) {
      if (normalization === "model") {
        for (const word of shortest(text).split(/\p{White_Space}+/u))
          for (const part of word.startsWith(SPACE) || word === "" ? [word] : [SPACE + word])
            for (const [piece] of part.matchAll(/\u2581[^\u2581]*/g)) addBest(piece, found);
        return;
      }
      const written = whole(text);
      const words = (): string[] => written.split(" ").flatMap((word) => (word === "" ? [] : [` ${word}`]));
      const spaced = merges ? words().join("") : written.replace(/^( *)(?=[^ ])/, `$1${prefix}`);
      addBest(withVisibleSpaces(spaced), found);
    },
    bytes(token) {
      bytesOf ??= bytePieces(vocabulary).bytesOf;
      return bytesOf(token);
    },
  };
}

/** What characters are replaced by before, as the vocabulary says: all that match, or grapheme by grapheme. */
interface Replacements {
  /** As SentencePiece does it: at each place the longest text that is replaced. */
  whole(text: string): string;
  /** As the library tokenizers does it: of each grapheme, or else of each character, what begins with the shortest text. */
  shortest(text: string): string;
}

/** The most bytes of a text that is replaced, and of a replacement: real ones have up to 40. It bounds time and memory. */
const LONGEST_REPLACED = 256;

const CHARACTERS_MAP = "tokenizer.ggml.precompiled_charsmap";

/** The texts are in a compact double array (XCDA) of 32-bit numbers; after it come the replacements, each up to a 0. */
function replacementsOf(metadata: GgufMetadata): Replacements {
  const map = Uint8Array.from(metadata.numbers(CHARACTERS_MAP) ?? [], Number);
  if (map.length === 0) return { whole: (text) => text, shortest: (text) => text };
  const view = new DataView(map.buffer);
  const size = map.length < 4 ? 0 : view.getUint32(0, true);
  const begin = 4 + size;
  if (size === 0 || size % 4 !== 0 || begin >= map.length)
    throw new GgufError("ERR_GGUF_INVALID", `'${CHARACTERS_MAP}' has ${map.length} bytes, and promises others`);
  // Beyond the array there is nothing: 0 is no node of any byte.
  const node = (at: number): number => (at * 4 < size ? view.getUint32(4 + at * 4, true) : 0);
  const base = (packed: number): number => (packed >>> 10) << ((packed & 0x200) >>> 6);

  /** The texts that the bytes have at a place, the shortest first: their length, and where their replacement is. */
  function* matches(bytes: Uint8Array, from: number): Generator<[length: number, at: number], void> {
    let at = base(node(0));
    const end = Math.min(bytes.length, from + LONGEST_REPLACED);
    for (let i = from; i < end && bytes[i] !== 0; i++) {
      at = (at ^ (bytes[i] as number)) >>> 0;
      const packed = node(at);
      if ((packed & 0x8000_00ff) !== bytes[i]) return;
      at = (at ^ base(packed)) >>> 0;
      if ((packed & 0x100) !== 0) yield [i + 1 - from, begin + (node(at) & 0x7fff_ffff)];
    }
  }
  const replacement = (at: number): Uint8Array => {
    const some = map.subarray(at, at + LONGEST_REPLACED);
    const end = some.indexOf(0);
    return end < 0 ? some : some.subarray(0, end);
  };
  const decoder = new Decoder("utf-8", { ignoreBOM: true });
  const shortestOf = (text: string): string | undefined => {
    const [first] = matches(utf8(text), 0);
    return first && decoder.decode(replacement(first[1]));
  };
  return {
    whole(text) {
      const bytes = utf8(text);
      const written: number[] = [];
      for (let at = 0; at < bytes.length; ) {
        const longest = [...matches(bytes, at)].at(-1);
        for (const byte of longest === undefined ? [bytes[at] as number] : replacement(longest[1])) written.push(byte);
        at += longest?.[0] ?? 1;
        // Replaced are whole characters only.
        while (longest === undefined && ((bytes[at] ?? 0) & 0xc0) === 0x80) written.push(bytes[at++] as number);
      }
      return decoder.decode(Uint8Array.from(written));
    },
    shortest(text) {
      const parts: string[] = [];
      for (const grapheme of graphemesOf(text)) {
        const whole = utf8(grapheme).length < 6 ? shortestOf(grapheme) : undefined;
        parts.push(whole ?? Array.from(grapheme, (each) => shortestOf(each) ?? each).join(""));
      }
      return parts.join("");
    },
  };
}

/** Code units that are segmented at a time: V8 takes the square of them. */
const WINDOW = 256;

function* graphemesOf(text: string): Generator<string, void> {
  const segmenter = new Intl.Segmenter();
  for (let at = 0; at < text.length; ) {
    const end = at + WINDOW;
    // No character is cut in two.
    const isCut = (text.codePointAt(end - 1) ?? 0) > 0xffff;
    const segments = Array.from(segmenter.segment(text.slice(at, isCut ? end - 1 : end)), ({ segment }) => segment);
    // The last one may go on.
    if (end < text.length && segments.length > 1) segments.pop();
    for (const segment of segments) {
      yield segment;
      at += segment.length;
    }
  }
}

/** Vocabularies of the kind `t5`, SentencePiece's unigram models: of all ways to write a text in pieces, that with the most score. */
import { GgufError } from "../base/errors";
import { Decoder, utf8 } from "../base/text-decoder";
import type { GgufMetadata } from "../file/metadata";
import { bytePieces, type Encoding, missing, SPACE, type Vocabulary, withVisibleSpaces } from "./encoding";
import { TOKEN_TYPES, tokenIdKey } from "./special-tokens";

/** Longer pieces are never found. It bounds the time, whatever the vocabulary is; real pieces have up to 16 characters. */
const LONGEST_PIECE = 256;
/** By how much an unknown character scores less than the worst piece. */
const UNKNOWN_PENALTY = 10;

export function unigramEncoding(vocabulary: Vocabulary, prefix: string): Encoding {
  const { metadata, ids, normalization } = vocabulary;
  const scores = metadata.numbers("tokenizer.ggml.scores");
  if (scores === undefined) throw missing("tokenizer.ggml.scores");
  const types = metadata.numbers("tokenizer.ggml.token_type") ?? [];
  const unknown = metadata.number(tokenIdKey("unk")) ?? 2;
  const scoreOf = (id: number): number => (Number(types[id]) === TOKEN_TYPES.user ? 0 : Number(scores[id]));
  const pieces = new Map<string, number>();
  let [longest, least] = [1, Number.POSITIVE_INFINITY];
  for (const [text, id] of ids) {
    const type = Number(types[id] ?? TOKEN_TYPES.normal);
    if (type === TOKEN_TYPES.control || type === TOKEN_TYPES.unknown || text.length > LONGEST_PIECE) continue;
    pieces.set(text, id);
    longest = Math.max(longest, text.length);
    if (type === TOKEN_TYPES.normal) least = Math.min(least, scoreOf(id));
  }
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
      for (let end = next; end <= Math.min(text.length, begin + longest); end++) {
        const id = pieces.get(text.slice(begin, end));
        if (id === undefined) continue;
        offer(begin, end, id, scoreOf(id));
        isKnown ||= end === next;
      }
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
    bytes: bytePieces(vocabulary).bytesOf,
  };
}

/** What characters are replaced by before, as the vocabulary says: all that match, or grapheme by grapheme. */
interface Replacements {
  /** As SentencePiece does it: at each place the longest text that is replaced. */
  whole(text: string): string;
  /** As the library tokenizers does it: of each grapheme, or else of each character, what begins with the shortest text. */
  shortest(text: string): string;
}

const CHARACTERS_MAP = "tokenizer.ggml.precompiled_charsmap";

/** The texts are in a compact double array (XCDA) of 32-bit numbers; after it come the replacements, each up to a 0. */
function replacementsOf(metadata: GgufMetadata): Replacements {
  const map = Uint8Array.from(metadata.numbers(CHARACTERS_MAP) ?? [], Number);
  if (map.length === 0) return { whole: (text) => text, shortest: (text) => text };
  const view = new DataView(map.buffer);
  const size = map.length < 4 ? 0 : view.getUint32(0, true);
  const begin = 4 + size;
  if (size === 0 || size % 4 !== 0 || begin >= map.length)
    throw new GgufError(
      "ERR_GGUF_INVALID",
      `'${CHARACTERS_MAP}' has ${map.length} bytes, and promises others`,
    );
  // Beyond the array there is nothing: 0 is no node of any byte.
  const node = (at: number): number => (at * 4 < size ? view.getUint32(4 + at * 4, true) : 0);
  const base = (packed: number): number => (packed >>> 10) << ((packed & 0x200) >>> 6);

  /** The texts that the bytes have at a place, the shortest first: their length, and where their replacement is. */
  function* matches(bytes: Uint8Array, from: number): Generator<[length: number, at: number], void> {
    let at = base(node(0));
    for (let i = from; i < bytes.length && bytes[i] !== 0; i++) {
      at = (at ^ (bytes[i] as number)) >>> 0;
      const packed = node(at);
      if ((packed & 0x8000_00ff) !== bytes[i]) return;
      at = (at ^ base(packed)) >>> 0;
      if ((packed & 0x100) !== 0) yield [i + 1 - from, begin + (node(at) & 0x7fff_ffff)];
    }
  }
  const replacement = (at: number): Uint8Array => {
    const end = map.indexOf(0, at);
    return map.subarray(at, end < 0 ? map.length : end);
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
        for (const byte of longest === undefined ? [bytes[at] as number] : replacement(longest[1]))
          written.push(byte);
        at += longest?.[0] ?? 1;
        // Replaced are whole characters only.
        while (longest === undefined && ((bytes[at] ?? 0) & 0xc0) === 0x80)
          written.push(bytes[at++] as number);
      }
      return decoder.decode(Uint8Array.from(written));
    },
    shortest(text) {
      const parts = Array.from(new Intl.Segmenter().segment(text), ({ segment }) => {
        const whole = utf8(segment).length < 6 ? shortestOf(segment) : undefined;
        return whole ?? Array.from(segment, (character) => shortestOf(character) ?? character).join("");
      });
      return parts.join("");
    },
  };
}

/** Vocabularies whose pieces are texts as they are: `rwkv`, where the longest piece counts, and `plamo2`, where scores do. */
import { GgufError } from "../base/errors";
import { utf8 } from "../base/text-decoder";
import { bytePieces, type Encoding, missing, type Vocabulary } from "./encoding";
import { Pieces } from "./pieces";
import { TOKEN_TYPES } from "./special-tokens";

const ESCAPES: Readonly<Record<string, number>> = { t: 9, n: 10, r: 13 };

/** The bytes of a piece, which is written as Python writes bytes. */
function unescaped(piece: string): Uint8Array {
  const hex = (digit: string): number => (digit >= "a" ? digit.charCodeAt(0) - 87 : digit.charCodeAt(0) - 48);
  // What is not complete at the end is nothing.
  const parts = piece.split(/(\\x.{0,2}|\\.?)/su).map((part, i) => {
    if (i % 2 === 0 || part === "\\") return utf8(part.slice(i % 2));
    if (part[1] === "x") return Uint8Array.from(part[3] ? [16 * hex(part.charAt(2)) + hex(part.charAt(3))] : []);
    const code = ESCAPES[part.slice(1)];
    return code === undefined ? utf8(part.slice(1)) : Uint8Array.of(code);
  });
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** A character for each byte. */
const characters = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

/** At each place, the longest piece. */
export function rwkvEncoding({ tokens }: Vocabulary): Encoding {
  const pieces = new Pieces(tokens.map((token) => characters(unescaped(token))));
  return {
    encode(text, found) {
      const written = characters(utf8(text));
      for (let at = 0; at < written.length; ) {
        let longest = 0;
        pieces.forEachAt(written, at, (id, length) => {
          if (longest === 0) found.push(id);
          else found[found.length - 1] = id;
          longest = length;
        });
        if (longest === 0) {
          const byte = written.charCodeAt(at);
          throw new GgufError("ERR_GGUF_INVALID", `the vocabulary has no token for a byte of the text, ${byte}`);
        }
        at += longest;
      }
    },
    bytes: (token) => unescaped(tokens[token] ?? ""),
  };
}

/** The score of a character that is written as its bytes, in units of 0.0001; what has twice as little or less is not found. */
const UNKNOWN = -10_000_000;

/** Of all ways to write a text, that with the most score; of equal ones, that with the longest pieces at the beginning. */
export function plamo2Encoding(vocabulary: Vocabulary): Encoding {
  const { metadata, tokens } = vocabulary;
  const given = metadata.numbers("tokenizer.ggml.scores");
  if (given === undefined) throw missing("tokenizer.ggml.scores");
  const types = metadata.numbers("tokenizer.ggml.token_type") ?? [];
  const { idOfByte, bytesOf } = bytePieces(vocabulary);
  const byte = idOfByte.indexOf(undefined);
  if (byte >= 0) throw new GgufError("ERR_GGUF_INVALID", `the vocabulary has no token for the byte ${byte}`);
  const scoreOf = (id: number): number => {
    const score = Number(given[id]) * 1e4;
    return Math.sign(score) * Math.round(Math.abs(score));
  };
  const pieces = new Pieces(tokens, (id) => {
    const isFound = scoreOf(id) > 2 * UNKNOWN && scoreOf(id) < Number.POSITIVE_INFINITY;
    return isFound && Number(types[id]) !== TOKEN_TYPES.byte;
  });
  return {
    encode(whole, found) {
      const text = whole.replace(/^\ufeff/, "");
      const best = new Float64Array(text.length + 1);
      const ends = new Int32Array(text.length);
      const last = new Int32Array(text.length);
      for (let at = text.length - 1; at >= 0; at--) {
        if (/[\udc00-\udfff]/.test(text.charAt(at))) continue;
        best[at] = Number.NEGATIVE_INFINITY;
        const offer = (end: number, score: number, id: number): void => {
          const sum = score + (best[end] as number);
          if (sum > (best[at] as number)) [best[at], ends[at], last[at]] = [sum, end, id];
        };
        const here: [id: number, length: number][] = [];
        pieces.forEachAt(text, at, (id, length) => here.unshift([id, length]));
        for (const [id, length] of here) offer(at + length, scoreOf(id), id);
        offer(at + ((text.codePointAt(at) as number) > 0xffff ? 2 : 1), UNKNOWN, -1);
      }
      for (let at = 0; at < text.length; at = ends[at] as number) {
        const id = last[at] as number;
        if (id >= 0) found.push(id);
        else for (const byte of utf8(text.slice(at, ends[at]))) found.push(idOfByte[byte] as number);
      }
    },
    bytes: (token) => (Number(types[token]) === TOKEN_TYPES.byte ? bytesOf(token) : utf8(tokens[token] ?? "")),
  };
}

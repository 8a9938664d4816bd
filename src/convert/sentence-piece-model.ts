/**
 * `tokenizer.model` of SentencePiece, a protocol buffer: fields, each a number and a kind, then its value. Of all fields these are
 * read: the pieces, field 1, messages with the text (1), the score (2) and the kind (3) of a piece; of the training (2) the kind
 * of the model (3); of what is done to texts before (3) the map of characters (2), and whether there is a space before a text (3),
 * and none twice (4).
 */

import { textOf } from "../base/bytes";
import { GgufError } from "../base/errors";
import { TOKEN_TYPES } from "../tokenizer/special-tokens";

export interface Piece {
  readonly text: string;
  readonly score: number;
  /** One of {@link TOKEN_TYPES}. */
  readonly type: number;
}

class Fields {
  readonly #bytes: Uint8Array;
  readonly #path: string;
  #at = 0;

  constructor(bytes: Uint8Array, path: string) {
    this.#bytes = bytes;
    this.#path = path;
  }

  /** Every field: its number, and its value: a whole number, or the bytes of anything else. */
  *[Symbol.iterator](): Generator<[field: number, value: number | Uint8Array], void, undefined> {
    while (this.#at < this.#bytes.length) {
      const key = this.#varint();
      const kind = key % 8;
      if (kind === 0) yield [Math.floor(key / 8), this.#varint()];
      else if (kind === 1 || kind === 2 || kind === 5) {
        const length = kind === 1 ? 8 : kind === 5 ? 4 : this.#varint();
        if (length > this.#bytes.length - this.#at) throw this.#invalid("a field is longer than the file");
        yield [Math.floor(key / 8), this.#bytes.subarray(this.#at, this.#at + length)];
        this.#at += length;
      } else throw this.#invalid(`no field is of kind ${kind}`);
    }
  }

  #varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw this.#invalid("a number does not end");
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw this.#invalid("a number has more than ten bytes");
  }

  #invalid(detail: string): GgufError {
    return new GgufError("ERR_GGUF_INVALID", `it is no SentencePiece model: ${detail}`, { path: this.#path });
  }
}

export interface SentencePieceModel {
  readonly pieces: Piece[];
  readonly kind: number;
  /** What characters become before all else. */
  readonly map: Uint8Array;
  readonly addsPrefix: boolean;
  readonly removesSpaces: boolean;
}

/** The kind of a model that chooses the most likely pieces. */
export const UNIGRAM = 1;

/** @throws GgufError ERR_GGUF_INVALID; ERR_GGUF_RANGE for more than `most` pieces, which are not read */
export function readSentencePiece(bytes: Uint8Array, most: number, path: string): SentencePieceModel {
  const pieces: Piece[] = [];
  let [kind, addsPrefix, removesSpaces, map] = [UNIGRAM, true, true, new Uint8Array()];
  for (const [field, message] of new Fields(bytes, path)) {
    if (typeof message === "number") continue;
    if (field === 1) {
      if (pieces.length === most) {
        throw new GgufError("ERR_GGUF_RANGE", `it has more than ${most} pieces`, { path });
      }
      pieces.push(readPiece(message, path));
    }
    if (field !== 2 && field !== 3) continue;
    for (const [inner, value] of new Fields(message, path)) {
      if (typeof value === "number") {
        if (field === 2 && inner === 3) kind = value;
        if (field === 3 && inner === 3) addsPrefix = value !== 0;
        if (field === 3 && inner === 4) removesSpaces = value !== 0;
      } else if (field === 3 && inner === 2) map = Uint8Array.from(value);
    }
  }
  return { pieces, kind, map, addsPrefix, removesSpaces };
}

function readPiece(message: Uint8Array, path: string): Piece {
  let text: Uint8Array = new Uint8Array();
  let [score, type] = [0, TOKEN_TYPES.normal as number];
  for (const [field, value] of new Fields(message, path)) {
    if (field === 1 && typeof value !== "number") text = value;
    else if (field === 2 && typeof value !== "number" && value.length === 4) {
      score = new DataView(value.buffer, value.byteOffset).getFloat32(0, true);
    } else if (field === 3 && typeof value === "number") type = value;
  }
  // What a user defined is found as a normal piece is.
  return { text: textOf(text), score, type: type === TOKEN_TYPES.user ? TOKEN_TYPES.normal : type };
}

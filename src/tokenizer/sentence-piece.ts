/** Vocabularies of the kind `llama`, from SentencePiece: every piece has a score. */
import { type Encoding, mergePairs, utf8Bytes, type Vocabulary } from "./encoding";

/** Stands for a space in a piece. */
const SPACE = "\u2581";

/** The piece for one byte of a character that has no piece of its own. */
function bytePiece(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

/** Repeatedly joins the pair whose piece has the highest score. Writes symbols that are not pieces byte by byte. */
export function sentencePieceEncoding({ metadata, tokens, ids }: Vocabulary): Encoding {
  const scores = metadata.numbers("tokenizer.ggml.scores");
  if (scores === undefined) throw new Error("the vocabulary has no scores, but its kind (llama) needs them");
  const unknown = metadata.number("tokenizer.ggml.unknown_token_id") ?? 0;
  const prefix = (metadata.boolean("tokenizer.ggml.add_space_prefix") ?? true) ? SPACE : "";
  const bytes = Array.from({ length: 256 }, (_, byte) => ids.get(bytePiece(byte)));
  const byteOf = new Map(bytes.map((id, byte) => [id, byte]));

  const rank = (left: string, right: string): number | undefined => {
    const id = ids.get(left + right);
    return id === undefined ? undefined : -Number(scores[id]);
  };
  const idsOf = (piece: string): number[] => {
    const id = ids.get(piece);
    return id === undefined ? Array.from(utf8Bytes(piece), (byte) => bytes[byte] ?? unknown) : [id];
  };
  return {
    encode(text) {
      if (text === "") return [];
      return mergePairs(Array.from(prefix + text.replaceAll(" ", SPACE)), rank).flatMap(idsOf);
    },
    bytes(token) {
      const byte = byteOf.get(token);
      return byte === undefined
        ? utf8Bytes((tokens[token] ?? "").replaceAll(SPACE, " "))
        : Uint8Array.of(byte);
    },
  };
}

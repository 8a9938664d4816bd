/** Vocabularies of the kind `llama`, from SentencePiece: every piece has a score. */
import {
  bytePieces,
  type Encoding,
  mergePairs,
  missing,
  SPACE,
  utf8Bytes,
  type Vocabulary,
} from "./encoding";

/** Repeatedly joins the pair whose piece has the highest score. Writes symbols that are not pieces byte by byte. */
export function sentencePieceEncoding(vocabulary: Vocabulary, prefix: string): Encoding {
  const { metadata, tokens, ids } = vocabulary;
  const scores = metadata.numbers("tokenizer.ggml.scores");
  if (scores === undefined) throw missing("tokenizer.ggml.scores");
  const unknown = metadata.number("tokenizer.ggml.unknown_token_id") ?? 0;
  const { idOfByte, byteOfId } = bytePieces(vocabulary);

  const rank = (left: string, right: string): number | undefined => {
    const id = ids.get(left + right);
    return id === undefined ? undefined : -Number(scores[id]);
  };
  const idsOf = (piece: string): number[] => {
    const id = ids.get(piece);
    return id === undefined ? Array.from(utf8Bytes(piece), (byte) => idOfByte[byte] ?? unknown) : [id];
  };
  return {
    encode(text) {
      if (text === "") return [];
      return mergePairs(Array.from((prefix + text).replaceAll(" ", SPACE)), rank).flatMap(idsOf);
    },
    bytes(token) {
      const byte = byteOfId.get(token);
      return byte === undefined
        ? utf8Bytes((tokens[token] ?? "").replaceAll(SPACE, " "))
        : Uint8Array.of(byte);
    },
  };
}

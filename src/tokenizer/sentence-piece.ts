/** Vocabularies of the kind `llama`, from SentencePiece: every piece has a score. */
import { utf8 } from "../base/text-decoder";
import { bytePieces, type Encoding, mergePairs, missing, SPACE, type Vocabulary } from "./encoding";
import { tokenIdKey } from "./special-tokens";

/** Repeatedly joins the pair whose piece has the highest score. Writes symbols that are not pieces byte by byte. */
export function sentencePieceEncoding(vocabulary: Vocabulary, prefix: string): Encoding {
  const { metadata, ids } = vocabulary;
  const scores = metadata.numbers("tokenizer.ggml.scores");
  if (scores === undefined) throw missing("tokenizer.ggml.scores");
  const unknown = metadata.number(tokenIdKey("unk")) ?? 0;
  const { idOfByte, bytesOf } = bytePieces(vocabulary);

  const rank = (left: string, right: string): number | undefined => {
    const id = ids.get(left + right);
    return id === undefined ? undefined : -Number(scores[id]);
  };
  const idsOf = (piece: string): number[] => {
    const id = ids.get(piece);
    return id === undefined ? Array.from(utf8(piece), (byte) => idOfByte[byte] ?? unknown) : [id];
  };
  return {
    encode(text) {
      if (text === "") return [];
      return mergePairs(Array.from((prefix + text).replaceAll(" ", SPACE)), rank).flatMap(idsOf);
    },
    bytes: bytesOf,
  };
}

/** Vocabularies of the kind `llama`, from SentencePiece: every piece has a score. */
import { utf8 } from "../base/text-decoder";
import {
  bytePieces,
  characterOf,
  type Encoding,
  type Merges,
  missing,
  type Vocabulary,
  Word,
  withVisibleSpaces,
} from "./encoding";
import { tokenIdKey } from "./special-tokens";

/** Repeatedly joins the pair whose piece has the highest score. Writes symbols that are not pieces byte by byte. */
export function sentencePieceEncoding(vocabulary: Vocabulary, prefix: string): Encoding {
  const { metadata, ids } = vocabulary;
  const scores = metadata.numbers("tokenizer.ggml.scores");
  if (scores === undefined) throw missing("tokenizer.ggml.scores");
  const unknown = metadata.number(tokenIdKey("unk")) ?? 0;
  const { idOfByte, bytesOf } = bytePieces(vocabulary);

  const textOf = (symbol: number): string => (symbol < 0 ? characterOf(symbol) : (vocabulary.tokens[symbol] as string));
  const joined = (left: number, right: number): number | undefined => ids.get(textOf(left) + textOf(right));
  const merges: Merges = {
    rank(left, right) {
      const id = joined(left, right);
      return id === undefined ? Number.POSITIVE_INFINITY : -Number(scores[id]);
    },
    join: (left, right) => joined(left, right) as number,
  };
  return {
    encode(text, tokens) {
      if (text === "") return;
      const written = withVisibleSpaces(prefix + text);
      const word = Word.withRoom(written.length);
      word.addCharacters(written, (character) => ids.get(character));
      word.join(merges);
      for (let i = 0; i < word.count; i++) {
        const symbol = word.symbols[i] as number;
        if (symbol >= 0) tokens.push(symbol);
        else for (const byte of utf8(characterOf(symbol))) tokens.push(idOfByte[byte] ?? unknown);
      }
    },
    bytes: bytesOf,
  };
}

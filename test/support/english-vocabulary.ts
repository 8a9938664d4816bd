/** A vocabulary of bytes and merges that was learnt from a text, as a model would have it: small, but one to try texts with. */
import { arr, bool, str, type TypedValue, u32 } from "./gguf-writer";

const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/** The characters that stand for bytes in such vocabularies: those that are visible for themselves, others from 256 on. */
const CHARACTERS: readonly string[] = characters();

function characters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isVisible = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(isVisible ? byte : next++);
  });
}

/** Metadata of a vocabulary of `size` tokens, in which pairs that are frequent in `text` are one token. */
export function englishVocabulary(text: string, size: number): [string, TypedValue][] {
  const merges = learn(text, size - CHARACTERS.length - SPECIAL.length);
  const tokens = [...[...CHARACTERS].sort(), ...merges.map((pair) => pair.replace(" ", "")), ...SPECIAL];
  // A text has fewer pairs than are wanted where it is short.
  while (tokens.length < size) tokens.splice(-SPECIAL.length, 0, `[unused${tokens.length}]`);
  const idOf = (name: string): TypedValue => u32(tokens.indexOf(name));
  return [
    ["tokenizer.ggml.model", str("gpt2")],
    ["tokenizer.ggml.pre", str("gpt-2")],
    ["tokenizer.ggml.tokens", arr("string", tokens)],
    [
      "tokenizer.ggml.token_type",
      arr(
        "int32",
        tokens.map((token) => (SPECIAL.includes(token) ? 3 : 1)),
      ),
    ],
    ["tokenizer.ggml.merges", arr("string", merges)],
    ["tokenizer.ggml.bos_token_id", idOf("<|endoftext|>")],
    ["tokenizer.ggml.eos_token_id", idOf("<|im_end|>")],
    ["tokenizer.ggml.add_bos_token", bool(false)],
  ];
}

/** Byte-pair encoding: again and again, the pair that is the most frequent in words becomes one symbol. */
function learn(text: string, most: number): string[] {
  const counts = new Map<string, number>();
  for (const word of text.match(/ ?\p{L}+| ?\p{N}+/gu) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  const words = Array.from(counts, ([word, count]) => ({
    symbols: Array.from(new TextEncoder().encode(word), (byte) => CHARACTERS[byte]!),
    count,
  }));
  const pairs = new Map<string, number>();
  const addPairs = ({ symbols, count }: (typeof words)[number], sign: number): void => {
    for (let i = 1; i < symbols.length; i++) {
      const pair = `${symbols[i - 1]} ${symbols[i]}`;
      pairs.set(pair, (pairs.get(pair) ?? 0) + sign * count);
    }
  };
  for (const word of words) addPairs(word, 1);
  const merges: string[] = [];
  while (merges.length < most) {
    let [best, frequency] = ["", 0];
    for (const [pair, count] of pairs) if (count > frequency) [best, frequency] = [pair, count];
    if (frequency === 0) break;
    merges.push(best);
    const [left, right] = best.split(" ") as [string, string];
    for (const word of words) {
      const { symbols } = word;
      if (!symbols.some((symbol, i) => symbol === left && symbols[i + 1] === right)) continue;
      addPairs(word, -1);
      for (let i = 0; i < symbols.length - 1; i++) {
        if (symbols[i] === left && symbols[i + 1] === right) symbols.splice(i, 2, left + right);
      }
      addPairs(word, 1);
    }
  }
  return merges;
}

/** What the kinds of vocabulary have in common. */
import type { GgufMetadata } from "gguf-native";

/** What differs between the kinds of vocabulary. */
export interface Encoding {
  /** The tokens of a text, without any at its beginning or end that stand for those. */
  encode(text: string): number[];
  /** The bytes that a token stands for. Characters may be spread over several tokens. */
  bytes(token: number): Uint8Array;
}

/** What is needed to make an {@link Encoding}. */
export interface Vocabulary {
  metadata: GgufMetadata;
  /** The text of each token, as the file writes it. */
  tokens: string[];
  /** The token of each text. */
  ids: ReadonlyMap<string, number>;
}

/**
 * Joins adjacent symbols as long as there is a pair with a rank: that of the lowest rank first, the leftmost of equals.
 * This is all of byte-pair encoding; how pairs are ranked is the vocabulary's affair.
 */
export function mergePairs(
  symbols: string[],
  rankOf: (left: string, right: string) => number | undefined,
): string[] {
  const merged = [...symbols];
  const rank = (i: number): number => rankOf(merged[i]!, merged[i + 1]!) ?? Number.POSITIVE_INFINITY;
  /** ranks[i] is that of merged[i] with the symbol behind it. */
  const ranks = Array.from({ length: Math.max(0, merged.length - 1) }, (_, i) => rank(i));
  for (;;) {
    let best = 0;
    for (let i = 1; i < ranks.length; i++) if (ranks[i]! < ranks[best]!) best = i;
    if ((ranks[best] ?? Number.POSITIVE_INFINITY) === Number.POSITIVE_INFINITY) return merged;
    merged.splice(best, 2, merged[best]! + merged[best + 1]!);
    ranks.splice(best, 1);
    if (best > 0) ranks[best - 1] = rank(best - 1);
    if (best < ranks.length) ranks[best] = rank(best);
  }
}

/** The common part of all kinds of vocabulary. */
import type { GgufMetadata } from "gguf-native";

/** The interface that each kind of vocabulary implements. */
export interface Encoding {
  /** The tokens of a text, without tokens that mark its beginning or end. */
  encode(text: string): number[];
  /** The bytes that a token stands for. The bytes of a character may belong to several tokens. */
  bytes(token: number): Uint8Array;
}

/** The data from which an {@link Encoding} is made. */
export interface Vocabulary {
  metadata: GgufMetadata;
  /** The text of each token, as in the file. */
  tokens: string[];
  /** The token for each text. */
  ids: ReadonlyMap<string, number>;
}

/**
 * Joins adjacent symbols until no pair has a rank. The pair with the lowest rank comes first, and of equal ranks the
 * leftmost pair. That is the whole algorithm of byte-pair encoding. The ranks depend on the vocabulary.
 */
export function mergePairs(
  symbols: string[],
  rankOf: (left: string, right: string) => number | undefined,
): string[] {
  const merged = [...symbols];
  const rank = (i: number): number => rankOf(merged[i]!, merged[i + 1]!) ?? Number.POSITIVE_INFINITY;
  /** ranks[i] is the rank of the pair of merged[i] and merged[i + 1]. */
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

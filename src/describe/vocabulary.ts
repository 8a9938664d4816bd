/** The tokens of a vocabulary, one after the other, in memory that does not grow with it. */

import { type GgufMetadata, valueAt } from "../file/metadata";
import { numbersOf, type ValuePlace, valueParts } from "../file/value-parts";
import { TOKEN_TYPES } from "../tokenizer/special-tokens";

/** A token as the file has it. */
export interface VocabularyToken {
  id: number;
  bytes: Uint8Array;
  /** What `tokenizer.ggml.token_type` says; undefined where the file has no types. */
  type: string | undefined;
  score: number | undefined;
}

const TYPE_NAMES = new Map<number, string>(Object.entries(TOKEN_TYPES).map(([name, type]) => [type, name]));

export const TOKENS_KEY = "tokenizer.ggml.tokens";

/** How many tokens there are. @throws Error for a file without a vocabulary */
export function tokenCount(metadata: GgufMetadata): number {
  const type = metadata.typeOf(TOKENS_KEY);
  if (type?.type === "array" && type.elementType === "string") return type.length;
  throw new Error(`the file has no vocabulary: no array of strings ${TOKENS_KEY}`);
}

/** The tokens in order. @throws Error for a file without a vocabulary */
export function* vocabularyTokens(metadata: GgufMetadata): Generator<VocabularyToken, void, undefined> {
  tokenCount(metadata);
  const types = numbersAt(metadata, "tokenizer.ggml.token_type");
  const scores = numbersAt(metadata, "tokenizer.ggml.scores");
  let id = 0;
  for (const bytes of stringsAt(valueAt(metadata, TOKENS_KEY) as ValuePlace)) {
    const type = types.next().value;
    const score = scores.next().value;
    yield { id, bytes, type: type === undefined ? undefined : (TYPE_NAMES.get(type) ?? String(type)), score };
    id++;
  }
}

/** The strings of an array; each is good until the next one is asked for. */
function* stringsAt(place: ValuePlace): Generator<Uint8Array, void, undefined> {
  for (const part of valueParts(place)) {
    if (part.kind === "text") throw new Error(`${TOKENS_KEY} has a text of ${part.length} bytes, which is no token`);
    if (part.kind !== "strings") continue;
    for (let i = 0; i < part.count; i++) yield part.bytes.subarray(part.starts[i], part.ends[i]);
  }
}

/** The numbers of an array; none where the key has no such value. */
function* numbersAt(metadata: GgufMetadata, key: string): Generator<number, undefined, undefined> {
  const place = valueAt(metadata, key);
  if (place?.type.type !== "array") return undefined;
  const { elementType } = place.type;
  if (elementType === "string" || elementType === "array") return undefined;
  for (const part of valueParts(place)) {
    if (part.kind !== "numbers") continue;
    for (const value of numbersOf(part.type, part.bytes)) yield Number(value);
  }
  return undefined;
}

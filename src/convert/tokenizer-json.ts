/** What is read of `tokenizer.json`. */
import { GgufError } from "../base/errors";

/** The longest vocabulary, several times as long as known ones. */
export const MOST_TOKENS = 2 ** 20;

interface TokenizerModel {
  readonly type?: string;
  readonly vocab?: Readonly<Record<string, number>>;
  readonly merges?: readonly (string | readonly [string, string])[];
  readonly byte_fallback?: boolean;
  readonly unk_id?: unknown;
}

/** What is used of `tokenizer.json`; of nobody's types, which is checked where it matters. */
export interface TokenizerJson {
  readonly model?: TokenizerModel;
  readonly added_tokens?: readonly AddedToken[];
  readonly normalizer?: Component | null;
  readonly pre_tokenizer?: Component | null;
  readonly post_processor?: Component | null;
  readonly decoder?: Component | null;
}

/** A token that texts are searched for. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
}

/** A part of a tokenizer, which may be a sequence of others. */
export type Component = Readonly<Record<string, unknown>> & { readonly type?: string };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isText = (value: unknown): boolean => typeof value === "string";

const isId = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;

/** Whether it is a token that is added, but for its number. */
export const isAddedToken = (token: unknown): token is Omit<AddedToken, "id"> =>
  isObject(token) && isText(token.content);

const isMerge = (merge: unknown): boolean =>
  isText(merge) || (Array.isArray(merge) && merge.length === 2 && merge.every(isText));

/**
 * Checks the lists of tokens and merges.
 * @throws GgufError ERR_GGUF_INVALID
 */
export function checkTokenizer({ model, added_tokens: added }: TokenizerJson, path: string): void {
  const merges = model?.merges;
  const isRight = (list: unknown, is: (each: unknown) => boolean): boolean =>
    list === undefined || list === null || (Array.isArray(list) && list.every(is));
  if (!isRight(merges, isMerge)) throw invalid("model.merges must be pairs of texts", path);
  if (!isRight(added, (each) => isAddedToken(each) && isId((each as Partial<AddedToken>).id))) {
    throw invalid("added_tokens must be objects with id and content", path);
  }
}

/**
 * The numbers of tokens; undefined where there are none.
 * @throws GgufError ERR_GGUF_INVALID; ERR_GGUF_RANGE for more than {@link MOST_TOKENS}
 */
export function vocabOf(tokenizer: TokenizerJson | undefined, path: string): TokenizerModel["vocab"] {
  const vocab = tokenizer?.model?.vocab;
  const ids = isObject(vocab) ? Object.values(vocab) : [];
  checkCount(ids.length, path);
  if (vocab === undefined || (isObject(vocab) && ids.every(isId))) return vocab;
  throw invalid("model.vocab of tokenizer.json must be tokens with numbers", path);
}

/**
 * The pieces of a vocabulary of the kind Unigram, with their scores; undefined for one of another kind.
 * @throws GgufError ERR_GGUF_INVALID; ERR_GGUF_RANGE for more than {@link MOST_TOKENS}
 */
export function unigramPiecesOf(
  tokenizer: TokenizerJson | undefined,
  path: string,
): readonly (readonly [text: string, score: number])[] | undefined {
  if (tokenizer?.model?.type !== "Unigram") return undefined;
  const vocab: unknown = tokenizer.model.vocab;
  if (!Array.isArray(vocab) || !vocab.every(isPiece)) {
    throw invalid("model.vocab of tokenizer.json must be pairs of a piece and its score", path);
  }
  checkCount(vocab.length, path);
  return vocab;
}

function checkCount(count: number, path: string): void {
  if (count <= MOST_TOKENS) return;
  const detail = `model.vocab of tokenizer.json has ${count} tokens; at most ${MOST_TOKENS} are read`;
  throw new GgufError("ERR_GGUF_RANGE", detail, { path });
}

const isPiece = (pair: unknown): boolean =>
  Array.isArray(pair) && pair.length === 2 && isText(pair[0]) && typeof pair[1] === "number";

const invalid = (detail: string, path: string): GgufError => new GgufError("ERR_GGUF_INVALID", detail, { path });

/** The components of a sequence, however deep, or the only one. */
export function componentsOf(component: unknown, list: string): Component[] {
  const found: Component[] = [];
  // Those that are left, the next one at the end: no file may use up the stack.
  const left = [component];
  while (left.length > 0) {
    const each = left.pop();
    if (!isObject(each)) continue;
    const parts = each[list];
    if (Array.isArray(parts)) for (const part of [...parts].reverse()) left.push(part);
    else found.push(each);
  }
  return found;
}

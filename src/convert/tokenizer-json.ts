/** What is read of `tokenizer.json`. */

/** What is used of `tokenizer.json`; of nobody's types, which is checked where it matters. */
export interface TokenizerJson {
  readonly model?: {
    readonly type?: string;
    readonly vocab?: Readonly<Record<string, number>>;
    readonly merges?: readonly (string | readonly [string, string])[];
    readonly byte_fallback?: boolean;
  };
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

/** The components of a sequence, however deep, or the only one. */
export function componentsOf(component: Component | null | undefined, list: string): Component[] {
  if (!component) return [];
  const parts = component[list];
  return Array.isArray(parts) ? parts.flatMap((part: Component) => componentsOf(part, list)) : [component];
}

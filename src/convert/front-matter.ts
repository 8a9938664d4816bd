/**
 * The YAML at the beginning of a Markdown file, between two lines `---`. `scripts/build/bundle-packages.mjs` puts the parser
 * into this file once it is compiled, so that the package depends on nothing.
 */
import { FAILSAFE_SCHEMA, loadAll, YAMLException } from "js-yaml";
import { GgufError } from "../base/errors";

/** What YAML can say where every plain value is text: `1.0` is no number, and `no`, the language, no boolean. */
export type Yaml = string | null | readonly Yaml[] | { readonly [key: string]: Yaml };

/** What a model card says in its front matter. */
export type Card = Readonly<Record<string, Yaml>>;

/** The longest that is read. Those with the results of a hundred benchmarks have a tenth of it. */
const MAX_LENGTH = 1 << 20;

/** So much of a file is enough to know whether its front matter is too long. */
export const FRONT_BYTES = 4 * MAX_LENGTH + 16;

/** Each value takes some hundred bytes of memory while it is read: those of tens of thousands of lines. */
const MAX_VALUES = 2 ** 16;

/** The longest lists at the top: of models and sets of data, each of which becomes several keys; and of languages. */
const MAX_ORIGINS = 2 ** 10;
const MAX_ITEMS = 2 ** 13;

/** Where values may begin: there are no more of them than that. */
const BEGINNINGS = /[[{,?:\n]|\r(?!\n)|-(?=\s|$)/g;

/**
 * What a Markdown file has at its beginning; nothing where it has none. Any takes less than 50 MB of memory.
 * @throws GgufError with the line: ERR_GGUF_INVALID for what is no YAML; ERR_GGUF_RANGE for more than a million characters,
 *   too many values, or aliases, of which a few stand for any number of values
 */
export function frontMatter(markdown: string, path: string): Card {
  const [opening] = /^---\r?\n/.exec(markdown) ?? [];
  if (opening === undefined) return {};
  const end = markdown.slice(opening.length).search(/^---\r?$/m);
  const text = markdown.slice(opening.length, end === -1 ? undefined : opening.length + end).replace(/\r?\n$/, "");
  const tooMuch = (line: number, detail: string): GgufError =>
    new GgufError("ERR_GGUF_RANGE", `its front matter, line ${line}: ${detail}`, { path });
  const lineOf = (at: number): number => text.slice(0, at).split(/\r?\n/).length + 1;
  if (text.length > MAX_LENGTH) {
    throw tooMuch(lineOf(MAX_LENGTH), `more than ${MAX_LENGTH} characters, which are not read`);
  }
  let count = 0;
  BEGINNINGS.lastIndex = 0;
  while (BEGINNINGS.test(text)) {
    if (++count <= MAX_VALUES) continue;
    throw tooMuch(lineOf(BEGINNINGS.lastIndex), `more than ${MAX_VALUES} values, which are not read`);
  }
  let value: unknown;
  try {
    // Tabs, which YAML does not allow, are common. Of two equal keys, the last counts.
    const options = { schema: FAILSAFE_SCHEMA, json: true, maxAliases: 0 };
    [value] = loadAll(text.replaceAll("\t", "  "), options);
  } catch (cause) {
    const isYaml = cause instanceof YAMLException;
    const line = isYaml ? (cause.mark?.line ?? 0) + 2 : 1;
    const reason = isYaml ? cause.reason : (cause as Error).message;
    if (reason.startsWith("aliases exceeded")) throw tooMuch(line, "aliases (*NAME) are not read: write out the value");
    if (reason.startsWith("nesting exceeded")) throw tooMuch(line, "too many levels of nesting");
    const detail = `its front matter is no YAML, line ${line}: ${reason}`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path, cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  for (const [key, items] of Object.entries(value as Card)) {
    const most = /^(base_model|dataset)/.test(key) ? MAX_ORIGINS : MAX_ITEMS;
    if (!Array.isArray(items) || items.length <= most) continue;
    const line = lineOf(Math.max(0, `\n${text}`.indexOf(`\n${key}:`)));
    throw tooMuch(line, `a list of ${items.length} values; at most ${most} are read`);
  }
  return value as Card;
}

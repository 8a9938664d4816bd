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

/**
 * What a Markdown file has at its beginning; nothing where it has none.
 * @throws GgufError ERR_GGUF_INVALID, with the line, for what is no YAML; ERR_GGUF_RANGE for more than a million characters
 */
export function frontMatter(markdown: string, path: string): Card {
  const [opening] = /^---\r?\n/.exec(markdown) ?? [];
  if (opening === undefined) return {};
  const end = markdown.slice(opening.length).search(/^---\r?$/m);
  const text = markdown
    .slice(opening.length, end === -1 ? undefined : opening.length + end)
    .replace(/\r?\n$/, "");
  if (text.length > MAX_LENGTH) {
    const detail = `its front matter has ${text.length} characters; at most ${MAX_LENGTH} are read`;
    throw new GgufError("ERR_GGUF_RANGE", detail, { path });
  }
  try {
    // Tabs, which YAML does not allow, are common. Of two equal keys, the last counts.
    const [value] = loadAll(text.replaceAll("\t", "  "), { schema: FAILSAFE_SCHEMA, json: true });
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
    return isMap ? (value as Card) : {};
  } catch (cause) {
    const detail =
      cause instanceof YAMLException
        ? `line ${(cause.mark?.line ?? 0) + 2}: ${cause.reason}`
        : (cause as Error).message;
    throw new GgufError("ERR_GGUF_INVALID", `its front matter is no YAML, ${detail}`, { path, cause });
  }
}

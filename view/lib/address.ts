/** Addresses of models: as people copy them, and as they are fetched. */

/** The URL of a model that a text names; relative ones count from `base`. @throws Error for what is no URL */
export function modelUrl(text: string, base: string): string {
  const trimmed = text.trim();
  if (/^hf:/i.test(trimmed)) return trimmed;
  if (trimmed === "" || !URL.canParse(trimmed, base)) throw new Error(`this is no URL: ${trimmed || "empty"}`);
  const url = new URL(trimmed, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new Error("a URL must begin with https://, http:// or hf://; a file is chosen or dropped");
  }
  // The page about a file of Hugging Face, rather than the file.
  if (url.hostname === "huggingface.co") {
    url.pathname = url.pathname.replace(/^((?:\/[^/]+){2,3})\/blob\//, "$1/resolve/");
  }
  return url.href;
}

/** The models that the URL of the page names: the one to look at, and the one to compare it with; "" for none. */
export type ModelUrls = readonly [a: string, b: string];

export function modelUrlsOf(search: string): ModelUrls {
  const [a = "", b = ""] = new URLSearchParams(search).getAll("url");
  return [a, b];
}

/**
 * Whether a model is on this machine, and so costs nothing to read: a file that was chosen ("" names none), or one served here.
 * The server has others, which it fetches itself, under `remote/`.
 */
export function isNear(url: string, base: string): boolean {
  return url === "" || /^http:\/\/(127\.0\.0\.1|localhost)[:/](?!.*\/remote\/\d+\/)/i.test(modelUrl(url, base));
}

/** What of the page's URL names the models. */
export function searchOf([a, b]: ModelUrls): string {
  const named = b === "" ? [a].filter(Boolean) : [a, b];
  return named.length === 0 ? "" : `?${named.map((url) => `url=${escaped(url)}`).join("&")}`;
}

/** Where one is, as the fragment of the page's URL says: "#tensors/blk.0.attn_q.weight?search=attn&order=size". */
export interface Place {
  /** The name of a tab in small letters; "" for the one that the page opens on. */
  readonly tab: string;
  /** What of it is shown: the name of a tensor, a key; "" for nothing. */
  readonly rest: string;
  /** How it is shown: what is searched, in which order. Only what is not as it always is. */
  readonly view: Readonly<Record<string, string>>;
}

export function placeOf(hash: string): Place {
  const [, tab = "", rest = "", view = ""] = /^#?([^/?]*)\/?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  return { tab, rest: decoded(rest), view: Object.fromEntries(new URLSearchParams(view)) };
}

export function hashOf({ tab, rest, view }: Place): string {
  const query = Object.entries(view).map(([name, value]) => `${escaped(name)}=${escaped(value)}`);
  return `#${tab}${rest === "" ? "" : `/${encodeURIComponent(rest)}`}${query.length === 0 ? "" : `?${query.join("&")}`}`;
}

/** As encodeURIComponent, but what may stand in a query is left as it is read. */
function escaped(text: string): string {
  return encodeURIComponent(text)
    .replace(/%(2F|3A|2C|5B|5D)/g, decodeURIComponent)
    .replaceAll("%20", "+");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** The names of files that are chosen together: those of one model, and where it is another one, that to compare it with. */
export function modelsOf<F extends { readonly name: string }>(files: readonly F[]): [a: F[], b: F[]] {
  const isShard = ({ name }: F): boolean => /-\d{5}-of-\d{5}\.gguf$/.test(name);
  const [a, b] = files;
  if (files.length === 2 && a !== undefined && b !== undefined && !files.every(isShard)) return [[a], [b]];
  return [[...files], []];
}

/** Addresses of models: as people copy them, and as they are fetched. */

/** The URL of a model that a text names; relative ones count from `base`. @throws Error for what is no URL */
export function modelUrl(text: string, base: string): string {
  const trimmed = text.trim();
  if (/^hf:/i.test(trimmed)) return trimmed;
  if (trimmed === "" || !URL.canParse(trimmed, base))
    throw new Error(`this is no URL: ${trimmed || "empty"}`);
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

/** The models that the URL of the page names: the one to look at, and one to compare it with. */
export function namedModels(search: string): string[] {
  return new URLSearchParams(search).getAll("url").slice(0, 2);
}

/** What of the fragment of the page's URL says where one is: "#tensors/blk.0.attn_q.weight". */
export interface Place {
  readonly tab: string;
  readonly rest: string;
}

export function placeOf(hash: string): Place {
  const [, tab = "", rest = ""] = /^#?([^/]*)\/?(.*)$/s.exec(hash) ?? [];
  try {
    return { tab, rest: decodeURIComponent(rest) };
  } catch {
    return { tab, rest: "" };
  }
}

export function hashOf({ tab, rest }: Place): string {
  return rest === "" ? `#${tab}` : `#${tab}/${encodeURIComponent(rest)}`;
}

/** The names of files that are chosen together: those of one model, and where it is another one, that to compare it with. */
export function modelsOf<F extends { readonly name: string }>(files: readonly F[]): [a: F[], b: F[]] {
  const isShard = ({ name }: F): boolean => /-\d{5}-of-\d{5}\.gguf$/.test(name);
  const [a, b] = files;
  if (files.length === 2 && a !== undefined && b !== undefined && !files.every(isShard)) return [[a], [b]];
  return [[...files], []];
}

/** What is a URL, for everything that takes the place of a file, and what may be shown of one. */
import { isUrl } from "../base/arguments";

/** Schemes that are known count without `//`, too. A letter alone is a drive of Windows. */
const SCHEME = /^(?:(https?|hf|ollama):|([a-z][a-z\d+.-]+):\/\/)/i;

/** The scheme of a URL in lower case, such as "https"; undefined for a path. A file may be called "a:b". */
export function schemeOf(place: string | URL): string | undefined {
  if (typeof place !== "string") return String(place.protocol).replace(/:$/, "").toLowerCase();
  const [, known, other] = SCHEME.exec(place) ?? [];
  return (known ?? other)?.toLowerCase();
}

/** Whether a server has what is there: `http:`, `https:`, and `hf:` for Hugging Face's hub. */
export function isRemote(place: unknown): place is string | URL {
  if (typeof place !== "string" && !isUrl(place)) return false;
  return /^(https?|hf)$/.test(schemeOf(place) ?? "");
}

/** What may be shown of a URL: not its query, which may hold a signature. */
export function publicUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

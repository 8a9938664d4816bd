/** Models as commands open them: in files, and for commands that can do with parts of them, on servers. */
import { type GgufFile, openRemote, openSync, type RemoteGgufFile } from "../index";
import { publicUrl } from "../source/http";
import { UsageError } from "./args";

/** Options of commands that open models, of which one may be split. */
export const SPLIT_OPTIONS = { "no-splits": { type: "boolean" } } as const;

/** Options of commands that take URLs. */
export const REMOTE_OPTIONS = { header: { type: "string", short: "H", multiple: true } } as const;

/** What their help says about it. */
export const REMOTE_HELP = `  -H, --header TEXT   sent with requests for a URL, such as
                      'Authorization: Bearer ...'; more than once for more
`;

export function isUrl(path: string): boolean {
  return /^https?:\/\//i.test(path);
}

/** What of a path or URL is shown. */
export function shownPath(path: string): string {
  return isUrl(path) ? publicUrl(new URL(path)) : path;
}

/** How {@link openModel} opens. */
export interface ModelOptions {
  partial: boolean;
  splits: boolean;
  headers: readonly string[] | undefined;
}

/** Opens a file or a URL. */
export async function openModel(
  path: string,
  { partial, splits, headers }: ModelOptions,
): Promise<GgufFile | RemoteGgufFile> {
  const pairs = (headers ?? []).map(checkHeader);
  if (isUrl(path)) return openRemote(path, { partial, splits, headers: pairs });
  if (pairs.length > 0) throw new UsageError("--header is for URLs");
  return openSync(path, { partial, splits });
}

function checkHeader(header: string): [name: string, value: string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*(.*?)\s*$/.exec(header) ?? [];
  // What a header is may be a secret: it is not repeated.
  if (name === undefined || value === undefined) throw new UsageError("--header must be 'Name: value'");
  return [name, value];
}

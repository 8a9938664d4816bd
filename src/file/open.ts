/** Opening GGUF files by their paths: {@link openSync}. */
import { fileURLToPath } from "node:url";
import { native, resultOf } from "../backend/native";
import { checkReadable } from "../backend/permission-model";
import { abortable } from "../base/abortable";
import { checkBoolean, checkOptions, checkSignal, isUrl, type OptionNames } from "../base/arguments";
import { invalidArgType, invalidArgValue } from "../base/errors";
import { stateOf } from "../source/file";
import { schemeOf } from "../source/url";
import { OpenFile } from "./handle";
import { GgufFile, PARSE_OPTIONS, type ParseOptions } from "./parse";
import { siblingPath } from "./shard-names";
import { openEach, openEachSync, shardsOf } from "./splits";

/** Options of {@link openSync}. */
export interface OpenOptions extends ParseOptions {
  /** `"mmap"` (default) maps the file; `"read"` uses ordinary reads, for network and FUSE file systems. */
  access?: "mmap" | "read" | undefined;
  /**
   * Open all files of a split model as one model. `path` may be any of them; all must be in one folder.
   * Default true; with false, only the given file is opened.
   */
  splits?: boolean | undefined;
}

export const OPEN_OPTIONS: OptionNames<OpenOptions & { signal?: AbortSignal }> = {
  ...PARSE_OPTIONS,
  access: true,
  splits: true,
  signal: true,
};

/**
 * Opens a GGUF file and reads its header; tensor data is not touched.
 *
 * @param path a path, or a `file:` URL, as an object or as text
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_OPEN if the system cannot open it (`cause.code` is the errno name);
 *   ERR_GGUF_MAGIC, ERR_GGUF_VERSION, ERR_GGUF_TRUNCATED or ERR_GGUF_INVALID if it is not a valid GGUF file,
 *   with the position of the error in `offset`. For a split model also ERR_GGUF_OPEN if one of its files is
 *   missing, and ERR_GGUF_INVALID if a file does not match its name
 */
export function openSync(path: string | URL, options?: OpenOptions): GgufFile {
  const name = checkPath(path);
  const { read, partial, splits } = checkOpenOptions(options);
  const open = (file: string): OpenFile => {
    checkReadable(file);
    // Looked at before: of what takes its place meanwhile is said that it has changed.
    const state = stateOf(file);
    return new OpenFile(native.open(file, read, partial), file, state);
  };
  return GgufFile.of(openEachSync(shardsOf(name, splits, siblingPath), open));
}

/** As {@link openSync}, off the main thread. Wrong arguments reject the promise. @internal */
export async function openPath(
  path: string | URL,
  options?: OpenOptions & { signal?: AbortSignal | undefined },
): Promise<GgufFile> {
  const name = checkPath(path);
  const { read, partial, splits } = checkOpenOptions(options);
  const signal = checkSignal(options?.signal);
  const open = async (file: string): Promise<OpenFile> => {
    signal?.throwIfAborted();
    checkReadable(file);
    const state = stateOf(file);
    const opening = resultOf(native.openAsync(file, read, partial));
    return new OpenFile(await abortable(opening, signal, native.close), file, state);
  };
  return GgufFile.of(await openEach(shardsOf(name, splits, siblingPath), open, signal));
}

const ELSEWHERE = "must be a path or a file: URL: open() opens http:, https: and hf: URLs, and names of Ollama's";

/** The path that was passed, or that a `file:` URL has. */
export function checkPath(path: unknown): string {
  if (typeof path !== "string" && !isUrl(path)) {
    throw invalidArgType("path", "of type string or an instance of URL", path);
  }
  const scheme = schemeOf(path);
  // Of a URL no more is shown than its scheme: the rest may hold a signature.
  if (scheme !== undefined && scheme !== "file") throw invalidArgValue("path", ELSEWHERE, `${scheme}:...`);
  const name = scheme === "file" ? fileURLToPath(path) : String(path);
  if (name.includes("\0")) throw invalidArgValue("path", "must be a string or URL without null bytes", path);
  return name;
}

function checkOpenOptions(options: OpenOptions | undefined): {
  read: boolean;
  partial: boolean;
  splits: boolean;
} {
  const { access, splits, partial } = checkOptions(options, OPEN_OPTIONS);
  if (access !== undefined && access !== "mmap" && access !== "read") {
    if (typeof access !== "string") throw invalidArgType("options.access", "of type string", access);
    throw invalidArgValue("options.access", "must be one of: 'mmap', 'read'", access);
  }
  return {
    read: access === "read",
    partial: checkBoolean("options.partial", partial, false),
    splits: checkBoolean("options.splits", splits, true),
  };
}

/** Opens the models that arguments name: files on this machine, URLs, and folders of safetensors. */
import { GgufError } from "../../base/errors";
import type { GgufModel } from "../../file/model";
import type { GgufModelTensor } from "../../file/model-tensor";
import { openSync } from "../../file/open";
import { SPLIT_COUNT } from "../../file/splits";
import { mappedFiles } from "../../file/unchanged";
import { isSafetensors } from "../../safetensors/is-safetensors";
import { isRepository, resolveHubUrl } from "../../source/hub";
import type { FileAsOpened } from "../../source/source";
import { isRemote, publicUrl, schemeOf } from "../../source/url";
import { UsageError } from "./parse";

/** Options of every command that reads models. */
export const MODEL_OPTIONS = {
  "no-splits": { type: "boolean" },
  header: { type: "string", short: "H", multiple: true },
} as const;

/** What their help says about these options, and about URLs. */
export const MODEL_HELP = `  --no-splits         one file of a split model alone
  -H, --header TEXT   sent with requests for a URL, such as
                      'Authorization: Bearer ...'; more than once for more

A URL is https://..., or hf://OWNER/NAME/FILE for a file of the hub of Hugging
Face. Its results are the same as those of the file. A model of safetensors is a
.safetensors file, a folder of these (a URL that ends in /) or hf://OWNER/NAME.
ollama://NAME:TAG is a model that Ollama has on this machine.
`;

/** The values of {@link MODEL_OPTIONS}. */
interface ModelOptionValues {
  "no-splits"?: boolean | undefined;
  header?: readonly string[] | undefined;
}

/** How to open models. */
export interface OpenModelOptions {
  /** Whether all files of a split model are opened, or the named one alone. */
  readonly splits: boolean;
  /** Sent with every request. */
  readonly headers: [name: string, value: string][];
}

/** A model that a command opened. Of one of safetensors, tensors are read as those of a server are. */
export interface OpenedModel {
  readonly file: GgufModel<GgufModelTensor>;
  /** The file or URL as it may be shown. */
  readonly path: string;
  /** What worker threads open for themselves; undefined for a model on a server, or of safetensors. */
  readonly local: LocalModel | undefined;
}

/** A model on this machine. */
export interface LocalModel {
  readonly path: string;
  readonly splits: boolean;
  /** Its files as they were opened. */
  readonly opened: readonly FileAsOpened[];
}

/**
 * What the values of {@link MODEL_OPTIONS} say.
 * @param paths the files and URLs that the command reads
 */
export function modelOptions(values: ModelOptionValues, paths: readonly string[]): OpenModelOptions {
  const headers = (values.header ?? []).map(checkHeader);
  for (const path of paths) checkUrl(path);
  if (headers.length > 0 && !paths.some(isRemote)) throw new UsageError("--header is for URLs");
  return { splits: !values["no-splits"], headers };
}

function checkHeader(header: string): [name: string, value: string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):(.*)$/.exec(header.trimEnd()) ?? [];
  // What a header holds may be a secret: it is not repeated.
  if (name === undefined || value === undefined) throw new UsageError("--header must be 'Name: value'");
  return [name, value.trim()];
}

function checkUrl(path: string): void {
  const scheme = schemeOf(path);
  if (scheme === undefined || scheme === "file" || scheme === "ollama" || isRepository(path)) return;
  if (!isRemote(path)) throw new UsageError(`models are opened by paths, https:, http: and hf: URLs, not ${scheme}:`);
  try {
    new URL(resolveHubUrl(path));
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** What stands for standard input, for commands that need the header alone. A file of that name is ./- */
export const STDIN = "-";

/** Whether a model is not a path of this machine, but a URL or a name of Ollama's: what only reads opens it, nothing replaces it. */
export function isElsewhere(path: string): boolean {
  return isRemote(path) || schemeOf(path) === "ollama";
}

/** The part of a path or URL that may be shown: a query may hold a signature. */
export function shownPath(path: string): string {
  return isRemote(path) && !isRepository(path) ? publicUrl(new URL(resolveHubUrl(path))) : path;
}

/**
 * Opens a file or a URL.
 * @param partial accept a file whose tensor data is cut off
 */
export async function openModel(path: string, options: OpenModelOptions, partial = false): Promise<OpenedModel> {
  const { splits } = options;
  try {
    const opened = await open(path, options, partial);
    return { ...opened, path: shownPath(path) };
  } catch (error) {
    if (splits && (await opensAlone(path, options, error))) {
      (error as Error).message += "; --no-splits takes this file alone";
    }
    throw error;
  }
}

/**
 * Opens a model even where its tensor data is cut off: `cutOff` is then the error that says so.
 * @param open opens it, `partial` or not
 */
export async function openPartially(
  open: (partial: boolean) => Promise<OpenedModel>,
): Promise<{ model: OpenedModel; cutOff: GgufError | undefined }> {
  try {
    return { model: await open(false), cutOff: undefined };
  } catch (error) {
    if (!(error instanceof GgufError) || error.code !== "ERR_GGUF_TRUNCATED") throw error;
    return { model: await open(true), cutOff: error };
  }
}

/**
 * Calls `use` with a model, which is closed afterwards. It is opened even where its tensor data is cut off: `cutOff` is
 * then the error that says so.
 * @param values of {@link MODEL_OPTIONS}
 * @param takesStdin whether `use` needs the header alone, so that it can be that of standard input
 */
export async function withPartialModel<T>(
  path: string,
  values: ModelOptionValues,
  use: (model: OpenedModel, cutOff: GgufError | undefined) => Promise<T>,
  takesStdin = false,
): Promise<T> {
  const options = modelOptions(values, [path]);
  const open =
    takesStdin && path === STDIN ? await stdinOpener() : (partial: boolean) => openModel(path, options, partial);
  const { model, cutOff } = await openPartially(open);
  try {
    return await use(model, cutOff);
  } finally {
    model.file.close();
  }
}

async function stdinOpener(): Promise<(partial: boolean) => Promise<OpenedModel>> {
  const { standardInput, PATH } = await import("../work/standard-input.js");
  const open = standardInput();
  return async (partial) => ({ file: await open(partial), path: PATH, local: undefined });
}

async function open(
  path: string,
  { splits, headers }: OpenModelOptions,
  partial: boolean,
): Promise<Pick<OpenedModel, "file" | "local">> {
  let local = path;
  // Loaded when it is needed, as everything that takes a while: most models are files.
  if (schemeOf(path) !== undefined || isSafetensors(path)) {
    const { openUnlessLocal } = await import("../../safetensors/open-model.js");
    const opened = await openUnlessLocal(path, { partial, splits, headers }).catch(asUsage);
    if (typeof opened !== "string") return { file: opened, local: undefined };
    local = opened;
  }
  const file = openSync(local, { partial, splits });
  return { file, local: { path: local, splits, opened: mappedFiles(file) } };
}

/** What is no name of anything is a mistake in the command line. */
function asUsage(error: Error): never {
  throw error instanceof TypeError ? new UsageError(error.message) : error;
}

/** Whether `error` is about the other files of a split model, and this one can be opened without them. */
async function opensAlone(path: string, options: OpenModelOptions, error: unknown): Promise<boolean> {
  const { code } = error as { code?: unknown };
  if (code !== "ERR_GGUF_OPEN" && code !== "ERR_GGUF_INVALID") return false;
  try {
    const { file } = await open(path, { ...options, splits: false }, true);
    const isShard = file.metadata.has(SPLIT_COUNT);
    file.close();
    return isShard;
  } catch {
    return false;
  }
}

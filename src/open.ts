/** Opening a model wherever it is: {@link open}. */
import { checkOptions, isBlob, isUrl, type OptionNames } from "./base/arguments";
import { invalidArgType } from "./base/errors";
import { checkPath, OPEN_OPTIONS, type OpenOptions, openPath } from "./file/open";
import type { GgufFile } from "./file/parse";
import type { RemoteGgufFile, RemoteOptions } from "./file/remote-file";
import { isSafetensors } from "./safetensors/is-safetensors";
import type { SafetensorsFile } from "./safetensors/model";
import { schemeOf } from "./source/url";

/** Options of {@link open}. Of these, `access` is for files of this machine, `fetch` and `headers` are for URLs. */
export interface OpenAnywhereOptions extends OpenOptions, Pick<RemoteOptions, "fetch" | "headers"> {
  /** Aborts the opening; the methods of tensors take their own signals. */
  signal?: AbortSignal | undefined;
}

const OPTIONS: OptionNames<OpenAnywhereOptions> = { ...OPEN_OPTIONS, fetch: true, headers: true };

/**
 * Opens a model, wherever it is, and reads its header; tensor data is not touched:
 *
 * - a GGUF file of this machine, by its path or `file:` URL: the model has synchronous methods, too. A name of Ollama's, as
 *   `ollama://llama3.2:1b`, is such a file.
 * - a GGUF file on a server, by an `http:` or `https:` URL, or `hf://OWNER/NAME/FILE` of the hub of Hugging Face, as
 *   {@link openRemote} does
 * - a model of safetensors, here or on a server: a file or an index by the ending of its name, a folder, or `hf://OWNER/NAME`,
 *   as {@link openSafetensors} does
 * - a `Blob`, such as a `File`: of safetensors if its name says so, or else GGUF
 *
 * All have the interface of `GgufModel`. To TypeScript, a string that it does not know is the path of a GGUF file; where it may
 * be something else, write `const model: GgufModel = await open(place)`.
 *
 * ```js
 * using model = await open("model.gguf");
 * const weights = await model.tensor("output.weight").dequantize();
 * ```
 *
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError as {@link openSync}, and as {@link openRemote} and {@link openSafetensors} of what these open
 * @throws the reason of `options.signal` if it is aborted
 */
export function open(
  place: Blob | `${"http" | "https" | "hf"}://${string}` | `${string}.safetensors`,
  options?: OpenAnywhereOptions,
): Promise<RemoteGgufFile | SafetensorsFile>;
export function open(place: string | URL, options?: OpenAnywhereOptions): Promise<GgufFile>;
export async function open(
  place: string | URL | Blob,
  options?: OpenAnywhereOptions,
): Promise<GgufFile | RemoteGgufFile | SafetensorsFile> {
  const { access, ...others } = checkOptions(options, OPTIONS);
  const { partial, splits, signal } = others;
  if (isBlob(place)) {
    const { openBlobOfEither } = await import("./safetensors/open-blob.js");
    return openBlobOfEither(place, { partial, splits, signal });
  }
  if (typeof place !== "string" && !isUrl(place))
    throw invalidArgType("place", "of type string or an instance of URL or Blob", place);
  const isHere = /^(file)?$/.test(schemeOf(place) ?? "");
  const at = isHere ? checkPath(place) : String(place);
  const local = { access, partial, splits, signal };
  if (isHere && !isSafetensors(at)) return openPath(at, local);
  const { openUnlessLocal } = await import("./safetensors/open-model.js");
  const found = await openUnlessLocal(at, others);
  return typeof found === "string" ? openPath(found, local) : found;
}

/** In place of `open.ts` where there are no files. */
import { checkOptions, isBlob, type OptionNames } from "./base/arguments";
import { openRemote, type RemoteGgufFile, type RemoteOptions } from "./file/remote-file";
import { isSafetensorsName } from "./safetensors/is-safetensors-name";
import type { SafetensorsFile } from "./safetensors/model";
import { openBlobOfEither } from "./safetensors/open-blob";
import { openSafetensors } from "./safetensors/open-place";

const OPTIONS: OptionNames<RemoteOptions> = {
  ...{ fetch: true, headers: true, signal: true },
  ...{ partial: true, splits: true },
};

/**
 * Opens a model, and reads its header: a GGUF file or a model of safetensors on a server, by an `http:`, `https:` or `hf:` URL, as
 * {@link openRemote} and {@link openSafetensors} do; or a `Blob`, such as a `File`: of safetensors if its name says so, or else
 * GGUF. All have the interface of `GgufModel`.
 *
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError as {@link openRemote} and {@link openSafetensors}
 * @throws the reason of `options.signal` if it is aborted
 */
export async function open(
  place: string | URL | Blob,
  options?: RemoteOptions,
): Promise<RemoteGgufFile | SafetensorsFile> {
  const checked = checkOptions(options, OPTIONS);
  const { fetch, headers, signal, partial, splits } = checked;
  if (isBlob(place)) return openBlobOfEither(place, { partial, splits, signal });
  if (isSafetensorsName(String(place))) return openSafetensors(place, { fetch, headers, signal });
  return openRemote(place, checked);
}

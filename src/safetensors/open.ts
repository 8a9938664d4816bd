/** Opens safetensors models of this machine, and all others: {@link openSafetensors}. */
import { stat } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { checkReadable } from "../backend/permission-model";
import { checkOptions, checkSignal, isBlob } from "../base/arguments";
import { checkPath } from "../file/open";
import { FileSource } from "../source/file";
import { isRemote } from "../source/url";
import type { Folder, Place } from "./folder";
import type { SafetensorsFile } from "./model";
import {
  openSafetensors as openElsewhere,
  openSafetensorsPlace,
  SAFETENSORS_OPTIONS,
  type SafetensorsOptions,
} from "./open-place";

/** A file or folder of this machine. @internal */
export async function localPlace(path: string): Promise<Place> {
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory();
  return isFolder ? { folder: localFolder(path) } : { folder: localFolder(dirname(path)), name: basename(path) };
}

function localFolder(path: string): Folder {
  return {
    path: path.endsWith(sep) ? path : path + sep,
    open: async (name) => {
      const file = path === "." ? name : join(path, name);
      checkReadable(file);
      return FileSource.open(file);
    },
  };
}

/**
 * Opens a safetensors model: a file, a folder with `model.safetensors` or with `model.safetensors.index.json` and the files that
 * it names, one of these on a server (a URL of a folder ends in `/`), `hf://OWNER/NAME` of the hub of Hugging Face, or a `Blob`.
 * It reads only the headers. The model has the interface of a GGUF file on a server; every rule of the format is checked.
 *
 * ```js
 * const model = await openSafetensors("model.safetensors");
 * const weights = await model.tensor("model.norm.weight").dequantize();
 * ```
 *
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError ERR_GGUF_INVALID or ERR_GGUF_TRUNCATED for a file that breaks a rule of the format, with the position of the
 *   error in `offset`; ERR_GGUF_UNSUPPORTED_TYPE for tensors of other types than `SafetensorsDtype`; ERR_GGUF_OPEN
 * @throws the reason of `options.signal` if it is aborted
 */
export async function openSafetensors(
  from: string | URL | Blob,
  options?: SafetensorsOptions,
): Promise<SafetensorsFile> {
  if (isBlob(from) || isRemote(from)) return openElsewhere(from, options);
  const signal = checkSignal(checkOptions(options, SAFETENSORS_OPTIONS).signal);
  signal?.throwIfAborted();
  return openSafetensorsPlace(await localPlace(checkPath(from)), signal);
}

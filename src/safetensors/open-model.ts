/** Opens a model of either format by its place: the one way for commands, and for whatever is written from models. */
import { checkPath } from "../file/open";
import { openRemote, type RemoteGgufFile, type RemoteOptions } from "../file/remote-file";
import { ollamaPath } from "../source/ollama";
import { isRemote, schemeOf } from "../source/url";
import { isSafetensors } from "./is-safetensors";
import type { SafetensorsFile } from "./model";
import { openSafetensors } from "./open";

/** The path of what is on this machine: that of a `file:` URL, and that of a name of Ollama's. */
export async function pathOf(place: string | URL): Promise<string> {
  return typeof place === "string" && schemeOf(place) === "ollama" ? ollamaPath(place) : checkPath(place);
}

/**
 * Opens what is on a server, and models of safetensors. A GGUF file of this machine is left to the caller, who may want it
 * mapped: its path is returned. Each file is opened once.
 * @throws as `openRemote`, `openSafetensors`, and `ollamaPath`
 */
export async function openUnlessLocal(
  place: string | URL,
  options: RemoteOptions,
): Promise<RemoteGgufFile | SafetensorsFile | string> {
  const { fetch, headers, signal } = options;
  const at = isRemote(place) ? String(place) : await pathOf(place);
  if (isSafetensors(at)) return openSafetensors(at, { fetch, headers, signal });
  return isRemote(at) ? openRemote(at, options) : at;
}

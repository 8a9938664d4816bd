/** Opens safetensors models, wherever they are. */
import { checkOptions, checkSignal, isBlob, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType } from "../base/errors";
import { closeFile } from "../file/handle";
import { checkFetch, type RemoteOptions } from "../file/remote-file";
import { MAX_OPENING } from "../file/splits";
import { BlobSource } from "../source/blob";
import { forEachConcurrently } from "../source/concurrent";
import { type Place, readFileOf, remotePlace } from "./folder";
import { parseIndex } from "./index-file";
import { quotable } from "./json-reader";
import { openSafetensorsSource, SafetensorsFile, type SafetensorsOpenFile } from "./model";

/** Options of {@link openSafetensors}: of these, `fetch` and `headers` are for URLs. */
export type SafetensorsOptions = Pick<RemoteOptions, "fetch" | "headers" | "signal">;

export const SAFETENSORS_OPTIONS: OptionNames<SafetensorsOptions> = {
  fetch: true,
  headers: true,
  signal: true,
};

const INDEX_NAME = "model.safetensors.index.json";
const FILE_NAME = "model.safetensors";

/** The longest index: some hundred bytes for each of 2^18 tensors. */
const MAX_INDEX_BYTES = 64 << 20;

/** Opens what is at a place. */
export async function openSafetensorsPlace(
  { folder, name }: Place,
  signal: AbortSignal | undefined,
): Promise<SafetensorsFile> {
  const indexName = name === undefined ? INDEX_NAME : name;
  const index = indexName.endsWith(".json") ? await readFileOf(folder, indexName, MAX_INDEX_BYTES, signal) : undefined;
  if (index === undefined) {
    const source = await folder.open(name ?? FILE_NAME);
    return SafetensorsFile.of([await openSafetensorsSource(source, signal)]);
  }
  const path = folder.path + indexName;
  const fileOf = parseIndex(index, path);
  const opened: SafetensorsOpenFile[] = [];
  const names = [...new Set(fileOf.values())].sort();
  try {
    await forEachConcurrently(names.entries(), MAX_OPENING, signal, async ([i, file], stop) => {
      opened[i] = await openSafetensorsSource(await folder.open(file), stop);
    });
    checkIndex(fileOf, names, opened, path);
    return SafetensorsFile.of(opened as [SafetensorsOpenFile, ...SafetensorsOpenFile[]]);
  } catch (error) {
    for (const file of opened) {
      if (file === undefined) continue;
      closeFile(file);
      await file.source.close();
    }
    throw error;
  }
}

/** Every tensor must be in the file that the index says, and in no other. */
function checkIndex(
  fileOf: ReadonlyMap<string, string>,
  names: readonly string[],
  opened: readonly SafetensorsOpenFile[],
  path: string,
): void {
  let count = 0;
  for (const [i, { stored, path: shard }] of opened.entries()) {
    for (const { name: tensor } of stored) {
      count++;
      const file = fileOf.get(tensor);
      if (file === names[i]) continue;
      const says = file === undefined ? "which the index does not name" : `which the index has in ${file}`;
      throw new GgufError("ERR_GGUF_INVALID", `it has this tensor, ${says}`, {
        path: shard,
        tensor: quotable(tensor),
      });
    }
  }
  if (count === fileOf.size) return;
  const present = new Set(opened.flatMap(({ stored }) => stored.map(({ name }) => name)));
  const [tensor, file] = [...fileOf].find(([name]) => !present.has(name)) as [string, string];
  const detail = `it is not in ${file}, where the index has it`;
  throw new GgufError("ERR_GGUF_INVALID", detail, { path, tensor: quotable(tensor) });
}

/**
 * Opens a safetensors model: a file on a server, or a `Blob`. A URL that ends in `/`, or `hf://OWNER/NAME`, is a folder, with
 * `model.safetensors` or the files that its `model.safetensors.index.json` names.
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
  const { fetch, headers, signal } = checkOptions(options, SAFETENSORS_OPTIONS);
  const checkedSignal = checkSignal(signal);
  const checkedFetch = checkFetch(fetch);
  checkedSignal?.throwIfAborted();
  if (isBlob(from)) {
    return SafetensorsFile.of([await openSafetensorsSource(new BlobSource(from), checkedSignal)]);
  }
  if (typeof from !== "string" && !(from instanceof URL)) {
    throw invalidArgType("from", "of type string or an instance of URL or Blob", from);
  }
  return openSafetensorsPlace(remotePlace(String(from), checkedFetch, new Headers(headers)), checkedSignal);
}

/** Opening GGUF files that a browser has as blobs: {@link openBlob}. */
import { checkBoolean, checkOptions, checkSignal, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType } from "../base/errors";
import { BlobSource, blobName } from "../source/blob";
import { openSource, RemoteGgufFile } from "./remote-file";
import type { RemoteOpenFile } from "./remote-tensor";
import { siblingPath } from "./shard-names";
import { openEach, shardsOf } from "./splits";

/** Options of {@link openBlob}. */
export interface BlobOptions {
  /** Aborts the opening; the methods of tensors take their own signals. */
  signal?: AbortSignal | undefined;
  /** Accept a file that is shorter than its header says. Default false. */
  partial?: boolean | undefined;
  /** Open all given files of a split model as one. Default true; with false, only the first one is opened. */
  splits?: boolean | undefined;
}

const BLOB_OPTIONS: OptionNames<BlobOptions> = { signal: true, partial: true, splits: true };

/**
 * Opens a GGUF file that a browser has as a `Blob`: a file that was chosen or dropped, or one in storage. It reads only the
 * header; the data of a tensor is read when it is asked for, a slice at a time.
 *
 * ```js
 * const file = await openBlob(input.files[0]);
 * const weights = await file.tensor("output.weight").dequantize();
 * ```
 *
 * @param blob the file, or all files of a split model in any order, which find each other by their names
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError ERR_GGUF_OPEN if the file cannot be read, or one of a split model was not given; ERR_GGUF_CHANGED if it
 *   was edited, moved or removed meanwhile; otherwise as `parse`
 * @throws the reason of `options.signal` if it is aborted
 */
export async function openBlob(blob: Blob | Iterable<Blob>, options?: BlobOptions): Promise<RemoteGgufFile> {
  const blobs = checkBlobs(blob);
  const { signal, partial, splits } = checkOptions(options, BLOB_OPTIONS);
  const checkedSignal = checkSignal(signal);
  const isPartial = checkBoolean("options.partial", partial, false);
  const isSplit = checkBoolean("options.splits", splits, true);
  checkedSignal?.throwIfAborted();
  const [first, ...others] = blobs;
  const named = new Map(others.map((other) => [blobName(other), other]));
  const place = blobName(first);
  const open = async (name: string, stop: AbortSignal): Promise<RemoteOpenFile> => {
    const found = name === place ? first : named.get(name);
    if (found === undefined) {
      const detail = "it was not given: give all files of the model, or open one alone with { splits: false }";
      throw new GgufError("ERR_GGUF_OPEN", detail, { path: name });
    }
    return openSource(new BlobSource(found), isPartial, stop);
  };
  const shards = shardsOf<RemoteOpenFile>(place, isSplit, siblingPath);
  return RemoteGgufFile.of(await openEach(shards, open, checkedSignal));
}

function checkBlobs(value: unknown): [Blob, ...Blob[]] {
  const blobs: unknown[] = isBlob(value) ? [value] : isIterable(value) ? [...value] : [];
  if (blobs.length > 0 && blobs.every(isBlob)) return blobs as [Blob, ...Blob[]];
  throw invalidArgType("blob", "an instance of Blob, or several", value);
}

/** Of any realm. */
function isBlob(value: unknown): value is Blob {
  if (typeof value !== "object" || value === null) return false;
  const { size, slice, arrayBuffer } = value as Partial<Record<keyof Blob, unknown>>;
  return typeof size === "number" && typeof slice === "function" && typeof arrayBuffer === "function";
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

/** Opens what a browser has: a model of either format, by its name. */
import { type BlobOptions, openBlob } from "../file/blob-file";
import type { RemoteGgufFile } from "../file/remote-file";
import { blobName } from "../source/blob";
import { isSafetensorsName } from "./is-safetensors-name";
import type { SafetensorsFile } from "./model";
import { openSafetensors } from "./open-place";

/** @throws as `openBlob` and `openSafetensors` */
export function openBlobOfEither(blob: Blob, options: BlobOptions): Promise<RemoteGgufFile | SafetensorsFile> {
  const { signal } = options;
  return isSafetensorsName(blobName(blob)) ? openSafetensors(blob, { signal }) : openBlob(blob, options);
}

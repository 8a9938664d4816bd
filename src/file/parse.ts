/** GGUF files in memory, and open files of any kind: {@link parse} and {@link GgufFile}. */

import { native } from "../backend/native";
import { checkBoolean, checkOptions, type OptionNames } from "../base/arguments";
import { invalidArgType } from "../base/errors";
import { isAnyArrayBuffer, isUint8Array } from "../base/typed-arrays";
import { OpenFile } from "./handle";
import { GgufModel } from "./model";
import { GgufTensor } from "./tensor";
import { type WarmOptions, warm } from "./warm";

/** Options of {@link parse}. */
export interface ParseOptions {
  /**
   * Accept a file whose tensor data is missing or truncated: all tensors are listed, and reading missing data
   * fails with ERR_GGUF_TRUNCATED. Default false.
   */
  partial?: boolean | undefined;
}

/** Names of options that every way to open a file has. */
export const PARSE_OPTIONS: OptionNames<ParseOptions> = { partial: true };

/**
 * An open GGUF file, or all files of a split model as one: metadata and tensors. Call `close()` when you are
 * done, or declare it with `using`. The garbage collector closes a file when nothing refers to it, its
 * tensors or its views.
 *
 * Metadata, tensors and views share the mapping of the file. After `close()`, methods that read data fail
 * with `ERR_GGUF_CLOSED` and views have length 0. Asynchronous work that has started still completes.
 */
export class GgufFile extends GgufModel<GgufTensor> {
  private constructor(files: [OpenFile, ...OpenFile[]]) {
    super(files, GgufTensor.at);
  }

  /** @internal */
  static of(files: [OpenFile, ...OpenFile[]]): GgufFile {
    return new GgufFile(files);
  }

  /**
   * Brings tensors into memory before they are needed, off the main thread. Without it, the first product with weights
   * that are still on the disk waits for the disk, and blocks its thread. Bytes that were parsed are in memory already.
   * @param options `onProgress` counts bytes
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND; ERR_GGUF_TRUNCATED where the file is shorter now;
   *   ERR_GGUF_OUT_OF_MEMORY where the system does not lock so much; ERR_GGUF_CLOSED; the reason of `options.signal`
   *   once that is aborted
   */
  async warm(options?: WarmOptions): Promise<void> {
    await warm(
      () => this.tensors.values(),
      (name) => this.tensor(name),
      options,
    );
  }
}

/**
 * Reads a GGUF file that is already in memory. The bytes are not copied: do not change them while the file is
 * in use.
 *
 * @throws TypeError ERR_INVALID_ARG_TYPE; GgufError as {@link openSync}
 */
export function parse(bytes: Uint8Array | ArrayBuffer, options?: ParseOptions): GgufFile {
  const view = isAnyArrayBuffer(bytes) ? new Uint8Array(bytes) : bytes;
  if (!isUint8Array(view)) throw invalidArgType("bytes", "an instance of Uint8Array or ArrayBuffer", bytes);
  const partial = checkBoolean("options.partial", checkOptions(options, PARSE_OPTIONS).partial, false);
  return GgufFile.of([new OpenFile(native.parse(view, partial), undefined)]);
}

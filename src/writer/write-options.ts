/** What everything that writes files takes. */
import {
  checkBoolean,
  checkOptions,
  checkProgress,
  checkSignal,
  type KnownNames,
  type OptionNames,
} from "../base/arguments";
import { invalidArgType } from "../base/errors";

/** What everything that writes files takes. */
export interface WriteOptions {
  /**
   * Aborting makes the promise reject with the signal's reason, and leaves no file behind. (A process that is killed
   * leaves temporary ones, `gguf-native.<process>.tmp`, in the folder of the new file, which `recover` or the next writer
   * there removes.)
   */
  signal?: AbortSignal | undefined;
  /** Called now and then with the bytes written so far and in all. */
  onProgress?: ((done: number, total: number) => void) | undefined;
  /**
   * Told what could not be made as it was, in one sentence: owner and group of a file that is replaced. By default
   * `process.emitWarning` is.
   */
  onWarning?: ((message: string) => void) | undefined;
  /**
   * Whether a new file takes the place of an existing one. Default true. With false that is ERR_GGUF_WRITE with
   * `cause.code` EEXIST, before anything is written, and also where a file of the name appears meanwhile. The files of the
   * model that is read are no such files: what may replace them does so either way.
   */
  overwrite?: boolean | undefined;
}

/** Options that were checked. */
export interface CheckedWriteOptions {
  readonly signal: AbortSignal | undefined;
  readonly onProgress: WriteOptions["onProgress"];
  readonly onWarning: (message: string) => void;
  readonly overwrite: boolean;
}

export const WRITE_OPTIONS: OptionNames<WriteOptions> = {
  signal: true,
  onProgress: true,
  onWarning: true,
  overwrite: true,
};

/**
 * @param known the names of all options, where there are more than these
 * @throws TypeError
 */
export function checkWriteOptions(
  options: WriteOptions | undefined,
  known: KnownNames = WRITE_OPTIONS,
): CheckedWriteOptions {
  const { signal, onProgress, onWarning, overwrite } = checkOptions(options, known);
  if (onWarning !== undefined && typeof onWarning !== "function") {
    throw invalidArgType("options.onWarning", "of type function", onWarning);
  }
  return {
    signal: checkSignal(signal),
    onProgress: checkProgress(onProgress),
    onWarning: onWarning ?? ((message) => process.emitWarning(message)),
    overwrite: checkBoolean("options.overwrite", overwrite, true),
  };
}

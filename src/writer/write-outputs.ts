/** Writing files of which the size is known: all appear, or none. */
import { abortable } from "../abortable";
import { checkOptions, checkProgress, checkSignal } from "../arguments";
import { invalidArgType } from "../errors";
import type { FileSource } from "../source/file";
import { commit } from "./commit";
import { gatherBuffer, OutputFile } from "./output-file";

/** What everything that writes files takes. */
export interface WriteOptions {
  /**
   * Aborting makes the promise reject with the signal's reason, and leaves no file behind. (A process that is killed
   * leaves temporary ones, `gguf-native.<random>.tmp`, in the folder of the new file.)
   */
  signal?: AbortSignal | undefined;
  /** Called now and then with the bytes written so far and in all. */
  onProgress?: ((done: number, total: number) => void) | undefined;
  /**
   * Told what could not be made as it was, in one sentence: owner and group of a file that is replaced. By default
   * `process.emitWarning` is.
   */
  onWarning?: ((message: string) => void) | undefined;
}

/** @internal */
export interface CheckedWriteOptions {
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ReturnType<typeof checkProgress>;
  readonly onWarning: (message: string) => void;
}

/** @throws TypeError */
export function checkWriteOptions(options: WriteOptions | undefined): CheckedWriteOptions {
  const { signal, onProgress, onWarning } = checkOptions(options);
  if (onWarning !== undefined && typeof onWarning !== "function") {
    throw invalidArgType("options.onWarning", "of type function", onWarning);
  }
  return {
    signal: checkSignal(signal),
    onProgress: checkProgress(onProgress),
    onWarning: onWarning ?? ((message) => process.emitWarning(message)),
  };
}

/** A file to be written, of which the size is known. */
export interface Output {
  readonly path: string;
  readonly byteLength: number;
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
  /** A file of the same size that differs at the start only. */
  readonly base?: { readonly source: FileSource; readonly start: Uint8Array } | undefined;
}

/**
 * Writes files, of which either all or none appear under their names.
 *
 * @param beforeCommit called once everything is written, before a file gets its name: to check that what was copied did
 *   not change meanwhile, and to close it, since not every system lets a file be replaced that is still open
 * @throws GgufError ERR_GGUF_WRITE; ERR_GGUF_CHANGED where bytes are missing, or another process is changing the same
 *   files; the reason of the signal; whatever a chunk or the progress callback throws
 */
export async function writeOutputs(
  outputs: readonly Output[],
  options: CheckedWriteOptions,
  beforeCommit: () => Promise<void> = async () => undefined,
): Promise<void> {
  const { signal, onWarning } = options;
  const gather = gatherBuffer();
  const progress = { done: 0, total: outputs.reduce((sum, { byteLength }) => sum + byteLength, 0) };
  const files: OutputFile[] = [];
  try {
    for (const output of outputs) {
      signal?.throwIfAborted();
      const file = await OutputFile.create(output.path, gather);
      files.push(file);
      await fill(file, output, options, progress);
      const warning = await file.finish(output.byteLength);
      if (warning !== undefined) onWarning(`${output.path}: ${warning}`);
    }
    await commit(files, beforeCommit, signal);
  } catch (error) {
    for (const file of files) await file.discard();
    throw error;
  } finally {
    // Not waited for: a source of chunks may never answer.
    for (const { chunks } of outputs) chunks.return().catch(() => undefined);
  }
}

async function fill(
  file: OutputFile,
  { chunks, base, byteLength }: Output,
  { signal, onProgress }: CheckedWriteOptions,
  progress: { done: number; readonly total: number },
): Promise<void> {
  if (base !== undefined && (await file.share(base.source))) {
    await file.write(base.start);
    progress.done += byteLength;
    onProgress?.(progress.done, progress.total);
    return;
  }
  for (;;) {
    const { done: ended, value } = await abortable(chunks.next(), signal, () => undefined);
    if (ended) return;
    progress.done += value.length;
    await file.write(value);
    signal?.throwIfAborted();
    onProgress?.(progress.done, progress.total);
  }
}

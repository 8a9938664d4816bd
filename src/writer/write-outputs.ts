/** Writing files of which the size is known: all appear, or none. */

import { checkWritable } from "../backend/permission-model";
import { abortable } from "../base/abortable";
import { nextTurn } from "../base/event-loop";
import type { FileSource } from "../source/file";
import { commit } from "./commit";
import { removeLeftovers } from "./leftovers";
import { gatherBuffer, OutputFile } from "./output-file";
import { checkReplaced, type Origin, type Replaced } from "./replaced-files";
import { folderOf } from "./settle";
import { unfinished } from "./unfinished";
import type { CheckedWriteOptions } from "./write-options";

/** Small pieces are written without waiting for the disk: after so many, signals and timers have their turn. */
const PIECES_A_TURN = 256;

/** A file to be written, of which the size is known. */
export interface Output {
  readonly path: string;
  readonly byteLength: number;
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
  /** A file of the same size that differs at the start only. */
  readonly base?: { readonly source: FileSource; readonly start: Uint8Array } | undefined;
}

/** How files are written. */
export interface WriteOutputsOptions extends CheckedWriteOptions {
  /** Only says what the files would take the place of. */
  readonly dryRun?: boolean;
}

/**
 * Writes files, of which either all or none appear under their names.
 *
 * @param origin what they are written from, which limits what they may take the place of
 * @param beforeCommit called once everything is written, before a file gets its name: to check that what was copied did
 *   not change meanwhile, and to close it, since not every system lets a file be replaced that is still open
 * @returns the paths under which there was a file, and what that is
 * @throws GgufError ERR_GGUF_WRITE, also for what exists and is not to be replaced; ERR_GGUF_CHANGED where bytes are
 *   missing, or another process is changing the same files; the reason of the signal; whatever a chunk or the progress callback throws
 */
export function writeOutputs(
  outputs: readonly Output[],
  origin: Origin,
  options: WriteOutputsOptions,
  beforeCommit: () => Promise<void> = async () => undefined,
): Promise<Map<string, Replaced>> {
  return unfinished(() => writeAllOrNone(outputs, origin, options, beforeCommit));
}

async function writeAllOrNone(
  outputs: readonly Output[],
  origin: Origin,
  options: WriteOutputsOptions,
  beforeCommit: () => Promise<void>,
): Promise<Map<string, Replaced>> {
  const { signal, onWarning, overwrite, dryRun = false } = options;
  const gather = gatherBuffer();
  const progress = { done: 0, total: outputs.reduce((sum, { byteLength }) => sum + byteLength, 0) };
  const files: OutputFile[] = [];
  try {
    const paths = outputs.map(({ path }) => path);
    if (!dryRun) for (const path of paths) checkWritable(path);
    const replaced = await checkReplaced(paths, origin, overwrite || dryRun);
    if (dryRun) return replaced;
    // Before anything is written: what is left may be as large, and the disk full.
    for (const folder of new Set(await Promise.all(paths.map(folderOf)))) await removeLeftovers(folder);
    for (const output of outputs) {
      signal?.throwIfAborted();
      const file = await OutputFile.create(output.path, gather, overwrite || replaced.has(output.path));
      files.push(file);
      await fill(file, output, options, progress);
      const warning = await file.finish(output.byteLength);
      if (warning !== undefined) onWarning(`${output.path}: ${warning}`);
    }
    await commit(files, beforeCommit, signal);
    return replaced;
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
  for (let pieces = 1; ; pieces++) {
    if (pieces % PIECES_A_TURN === 0) await nextTurn();
    const { done: ended, value } = await abortable(chunks.next(), signal, () => undefined);
    if (ended) return;
    progress.done += value.length;
    await file.write(value);
    signal?.throwIfAborted();
    onProgress?.(progress.done, progress.total);
  }
}

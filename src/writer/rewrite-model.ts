/** A model written anew, with some of it left out, under other names, or in the other byte order. */
import type { GgufModel } from "../file/model";
import { openModelSource } from "./model-source";
import type { Replaced } from "./replaced-files";
import type { CheckedWriteOptions } from "./write-options";
import { writeOutputs } from "./write-outputs";
import { GgufWriter, type GgufWriterOptions } from "./writer";

/** What the new file has of a model. */
export interface RewritePlan {
  /** The tensors that stay, by their names, and what they are called then. Each keeps its place. */
  readonly names: ReadonlyMap<string, string>;
  /** The keys that are left out. */
  readonly removedKeys: readonly string[];
  readonly byteOrder: NonNullable<GgufWriterOptions["byteOrder"]>;
}

/**
 * Writes what `plan` makes of a model to one file, of version 3, which appears once it is complete.
 *
 * @param input a path, or an open model of any kind
 * @param output may be the file of the model, unless that has several
 * @param dryRun only says how long the file would be
 * @returns the plan, the bytes of the new file, and what it takes the place of
 * @throws GgufError as `GgufWriter.from` and `GgufWriter.write`; ERR_GGUF_CHANGED if the model changes meanwhile
 */
export async function rewriteModel<P extends RewritePlan>(
  input: string | GgufModel,
  output: string,
  plan: (model: GgufModel) => P,
  options: CheckedWriteOptions,
  dryRun: boolean,
): Promise<{ plan: P; byteLength: number; replaces: Replaced | undefined }> {
  const source = await openModelSource(input, options.signal, !dryRun);
  try {
    const { model } = source;
    const made = plan(model);
    const writer = GgufWriter.from(model, { byteOrder: made.byteOrder });
    for (const name of model.tensors.keys()) if (!made.names.has(name)) writer.removeTensor(name);
    for (const key of made.removedKeys) writer.removeMetadata(key);
    writer.renameTensors(made.names);
    const { byteLength } = writer;
    const target = { path: output, byteLength, chunks: writer.chunks() };
    const to = { ...options, dryRun };
    const replaced = await writeOutputs([target], source.origin, to, source.finish);
    return { plan: made, byteLength, replaces: replaced.get(output) };
  } finally {
    await source.close();
  }
}

/** Checkpoints beside GGUF files, for commands that compare both. */
import type { GgufModel } from "../../file/model";
import type { GgufModelTensor } from "../../file/model-tensor";
import type { SafetensorsFile } from "../../safetensors/model";
import type { OpenedModel, OpenModelOptions } from "../arguments/open-model";
import type { Terminal } from "../output/terminal";

/**
 * A checkpoint as the GGUF file that `convert` makes of it, with the name and type of the GGUF file that it is compared with. A
 * model of another architecture stays what it is, which is said; so does a GGUF file, and a checkpoint beside another.
 * @param place where the model was opened
 */
export async function asConverted(
  model: OpenedModel,
  place: string,
  other: GgufModel<GgufModelTensor>,
  { headers }: OpenModelOptions,
  terminal: Terminal,
): Promise<OpenedModel> {
  if (model.file.format === "gguf" || other.format !== "gguf") return model;
  const { NotConverted, openCheckpoint, placeOf } = await import("../../convert/converted-model.js");
  const { metadata } = other;
  const text = (key: string): string | undefined =>
    metadata.typeOf(key)?.type === "string" ? metadata.string(key) : undefined;
  const { numberOf } = await import("../../file/scalars.js");
  const options = {
    name: text("general.name"),
    wordRule: text("tokenizer.ggml.pre"),
    fileType: () => numberOf(metadata, "general.file_type") ?? 0,
  };
  try {
    const at = await placeOf(place, new Headers(headers));
    const opened = model.file as SafetensorsFile;
    const { converted } = await openCheckpoint(at, options, undefined, opened);
    return { ...model, file: converted };
  } catch (error) {
    if (!(error instanceof NotConverted)) throw error;
    terminal.complain(`compared as it is, not converted: ${error.message}`);
    return model;
  }
}

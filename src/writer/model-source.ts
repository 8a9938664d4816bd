/** Models that others are written from, wherever they are. */
import { invalidArgType } from "../base/errors";
import { GgufModel } from "../file/model";
import { GgufFile } from "../file/parse";
import { RemoteGgufFile } from "../file/remote-file";
import { checkUnchanged } from "../file/unchanged";
import { openUnlessLocal } from "../safetensors/open-model";
import { checkInputs, closeInputs, type InputFile, openInputs } from "./input-file";
import { settleModel } from "./journal";

/** A model that is read to write another one. */
export interface ModelSource {
  readonly model: GgufModel;
  /** Its files on this machine. */
  readonly origin: { readonly model: readonly string[]; readonly others: readonly string[] };
  /** To be called before another file takes their place: checks that they are what they were, and closes them. */
  readonly finish: () => Promise<void>;
  /** More than once is fine. */
  readonly close: () => Promise<void>;
}

/**
 * Opens a model of any kind, or takes one that is open. What is opened is opened once.
 * @param settles whether what other processes have left behind is settled first: not where nothing may be written
 * @throws TypeError for what is none of these; GgufError as `open`, `openRemote` and `recover`
 */
export async function openModelSource(
  input: string | URL | GgufModel,
  signal: AbortSignal | undefined,
  settles: boolean,
): Promise<ModelSource> {
  if (input instanceof GgufModel) return sourceOfOpen(input);
  if (typeof input !== "string" && !(input instanceof URL)) {
    throw invalidArgType("input", "a path, a URL or an open model", input);
  }
  const opened = await openUnlessLocal(input, { signal });
  if (typeof opened !== "string") {
    const source = sourceOfOpen(opened);
    return { ...source, close: async () => opened.close() };
  }
  if (settles) await settleModel(opened, signal);
  const inputs = await openInputs(opened, signal);
  return sourceOf(RemoteGgufFile.of(inputs), inputs);
}

function sourceOfOpen(model: GgufModel): ModelSource {
  // No new file takes the place of one of safetensors.
  const origin = model instanceof GgufFile ? { model: model.paths, others: [] } : { model: [], others: model.paths };
  return { model, origin, finish: () => checkUnchanged(model), close: async () => undefined };
}

function sourceOf(model: GgufModel, inputs: readonly InputFile[]): ModelSource {
  const close = (): Promise<void> => closeInputs(inputs);
  const finish = async (): Promise<void> => {
    await checkInputs(inputs);
    await close();
  };
  return { model, origin: { model: model.paths, others: [] }, finish, close };
}

/** Models that others are written from, wherever they are. */
import { invalidArgType } from "../base/errors";
import { GgufModel } from "../file/model";
import { checkPath, open } from "../file/open";
import { GgufFile } from "../file/parse";
import { openRemote } from "../file/remote-file";
import { checkInputs, closeInputs, type InputFile, openInput } from "./input-file";
import { settleModel } from "./journal";

/** A model that is read to write another one. */
export interface ModelSource {
  readonly model: GgufModel;
  /** Its files on this machine. */
  readonly paths: readonly string[];
  /** To be called before another file takes their place: checks that they are what they were, and closes them. */
  readonly finish: () => Promise<void>;
  /** More than once is fine. */
  readonly close: () => Promise<void>;
}

/**
 * Opens a model of any kind, or takes one that is open.
 * @param settles whether what other processes have left behind is settled first: not where nothing may be written
 * @throws TypeError for what is none of these; GgufError as `open`, `openRemote` and `recover`
 */
export async function openModelSource(
  input: string | URL | GgufModel,
  signal: AbortSignal | undefined,
  settles: boolean,
): Promise<ModelSource> {
  if (input instanceof GgufModel) return sourceOf(input, () => undefined, signal);
  if (typeof input !== "string" && !(input instanceof URL)) {
    throw invalidArgType("input", "a path, a URL or an open model", input);
  }
  if (/^(https?|hf):/i.test(String(input))) {
    const model = await openRemote(input, signal === undefined ? {} : { signal });
    return sourceOf(model, () => model.close(), signal);
  }
  const path = checkPath(input);
  if (settles) await settleModel(path, signal);
  // Read rather than mapped: what was read of a mapping stays in memory as long as there is room.
  const model = await open(path, { access: "read", signal });
  return sourceOf(model, () => model.close(), signal);
}

async function sourceOf(
  model: GgufModel,
  closeModel: () => void,
  signal: AbortSignal | undefined,
): Promise<ModelSource> {
  const paths = model instanceof GgufFile ? model.paths : [];
  const inputs: InputFile[] = [];
  const close = async (): Promise<void> => {
    closeModel();
    await closeInputs(inputs);
  };
  try {
    for (const path of paths) inputs.push(await openInput(path, "r", signal));
  } catch (error) {
    await close();
    throw error;
  }
  const finish = async (): Promise<void> => {
    await checkInputs(inputs);
    await close();
  };
  return { model, paths, finish, close };
}

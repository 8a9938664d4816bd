/** Work on models that this thread maps. */
import { type GgufFile, openSync } from "../../index";
import type { LocalModel } from "../arguments/open-model";
import { prepareWork, type WorkKind } from "./kinds";
import { mappedPieces } from "./mapped-pieces";
import type { Task } from "./pieces";

/** What a thread prepares itself with. */
export interface ThreadSetup {
  readonly kind: WorkKind;
  readonly setup: unknown;
  readonly models: readonly LocalModel[];
}

/** What a thread answers to a task. */
export type Answer = { result: unknown } | { error: { message: string; code: string | undefined } };

/** Opens the models and prepares the work on them; `close` closes them. */
export function mappedWork({ kind, setup, models }: ThreadSetup): {
  work: (task: Task) => Promise<unknown>;
  close: () => void;
} {
  const files: GgufFile[] = [];
  const close = (): void => {
    for (const file of files) file.close();
  };
  try {
    // The command has checked what must be there; what is cut off may be of other tensors.
    for (const { path, splits } of models) files.push(openSync(path, { splits, partial: true }));
  } catch (error) {
    close();
    throw error;
  }
  const work = prepareWork(kind, setup);
  const pieces = mappedPieces(files);
  return { work: (task) => work(pieces(task), task), close };
}

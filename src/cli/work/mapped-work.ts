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

/** Prepares the work on models that are open; call it with a task. */
export function workOn(
  files: readonly GgufFile[],
  kind: WorkKind,
  setup: unknown,
): (task: Task) => Promise<unknown> {
  const work = prepareWork(kind, setup);
  const pieces = mappedPieces(files);
  return (task) => work(pieces(task), task);
}

/** Opens the models and prepares the work on them. */
export function mappedWork({ kind, setup, models }: ThreadSetup): (task: Task) => Promise<unknown> {
  // The command has checked what must be there; what is cut off may be of other tensors.
  const files = models.map(({ path, splits }) => openSync(path, { splits, partial: true }));
  return workOn(files, kind, setup);
}

/** Metadata that says how a model lies in its files, and nothing about the model. */
import { SPLIT_COUNT, SPLIT_NO, SPLIT_TENSORS } from "../file/splits";

/** Keys that `hash` and `diff` leave out. */
export const LAYOUT_KEYS: ReadonlySet<string> = new Set<string>([
  "general.alignment",
  SPLIT_NO,
  SPLIT_COUNT,
  SPLIT_TENSORS,
]);

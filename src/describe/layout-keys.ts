/** Metadata that says how a model lies in its files, and nothing about the model. */
import { ALIGNMENT_KEY } from "../file/metadata-keys";
import { SPLIT_COUNT, SPLIT_NO, SPLIT_TENSORS } from "../file/splits";

/** Keys that `hash` and `diff` leave out. */
export const LAYOUT_KEYS: ReadonlySet<string> = new Set([ALIGNMENT_KEY, SPLIT_NO, SPLIT_COUNT, SPLIT_TENSORS]);

/** What `gguf-native inspect` shows: for people see inspect-report.ts, for programs inspect-json.ts. */

import type { MemoryUse } from "../../describe/memory";
import type { GgufModel, GgufModelTensor } from "../../index";
import type { Listed } from "./listed";

/** The parts of a model that are shown. */
export interface InspectView {
  /** As it may be shown. */
  readonly path: string;
  readonly file: GgufModel<GgufModelTensor>;
  readonly sections: { readonly summary: boolean; readonly tensors: boolean; readonly metadata: boolean };
  /** What the model takes to run, if that is shown. */
  readonly memory: MemoryUse | undefined;
  /** The tensors that the filter selects. */
  readonly tensors: Listed<GgufModelTensor>;
  /** The metadata keys that it selects. */
  readonly keys: Listed<string>;
  /** Whether tensors of blocks that are alike share a line. */
  readonly isGrouped: boolean;
  /** Whether offsets of tensors are what is asked for. */
  readonly offsets: boolean;
}

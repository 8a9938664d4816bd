/** Where a model is, and what is opened there. */
import type { GgufModel } from "../file/model";
import type { GgufFile } from "../file/parse";
import type { FileAsOpened } from "../source/source";

/** Where a model is. */
export type Place = string | URL | Blob | GgufModel;

/** The same for another thread: an open model as the files that are mapped, or as its bytes. */
export type PostedPlace = string | Blob | readonly [FileAsOpened, ...FileAsOpened[]] | Uint8Array;

/** A model that is open. */
export interface Loaded {
  readonly file: GgufFile;
  /** Prepares the matrices of a small model, for whoever has time for it. */
  readonly prepareAll?: () => Promise<void>;
  /** Whether it was opened here, and is to be closed here. */
  readonly isOwn: boolean;
  /** Texts that are to be put before others, by their names. */
  readonly prompts: Readonly<Record<string, string>>;
}

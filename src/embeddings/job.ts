/** What embedders ask of what runs their model, which may be another thread. */
import type { NetworkOptions } from "./network";

/** What is known of a model once it is open. */
export interface Facts {
  readonly path: string | undefined;
  readonly dimensions: number;
  readonly maxTokens: number;
  readonly hasVectors: boolean;
  readonly hasScores: boolean;
  readonly prompts: Readonly<Record<string, string>>;
}

/** A text of which a vector is wanted, or the number that it has for a query. */
export interface Item {
  readonly text: string;
  readonly query: string | undefined;
  readonly isScored: boolean;
  readonly dimensions: number;
  readonly isNormalized: boolean;
}

/** What becomes of an item: an error where something is wrong with its text. */
export type Result = Float32Array | Error;

/** What runs a model. */
export interface Runner {
  readonly facts: Facts;
  /** The results of items, in their order. Several calls wait for each other. */
  run(items: readonly Item[]): Promise<Result[]>;
  /** Ends it: what is under way is rejected, or goes on to its end unseen. */
  close(): void;
  /** Whether it has failed, so that another one is needed. */
  readonly isOver: boolean;
}

/** Starts what runs the model at a place. */
export type StartRunner<P> = (place: P, options: NetworkOptions, signal: AbortSignal | undefined) => Promise<Runner>;

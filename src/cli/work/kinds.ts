/**
 * The kinds of work. Each is a function that prepares it, once in every thread, from a setup. Setups and results go
 * between threads: plain data.
 */
import { compare } from "./compare";
import { digest } from "./digest";
import { distribution } from "./distribution";
import { finite } from "./finite";
import type { Work } from "./pieces";
import { scan } from "./scan";

const kinds = { compare, digest, distribution, finite, scan } as const;

export type WorkKind = keyof typeof kinds;

/** What a kind of work is prepared with. */
export type WorkSetup<K extends WorkKind> = Parameters<(typeof kinds)[K]>[0];

/** What it results in for each task. */
export type WorkResult<K extends WorkKind> = Awaited<ReturnType<ReturnType<(typeof kinds)[K]>>>;

/** Prepares work of a kind. */
export function prepareWork(kind: WorkKind, setup: unknown): Work<unknown> {
  return (kinds[kind] as (setup: unknown) => Work<unknown>)(setup);
}

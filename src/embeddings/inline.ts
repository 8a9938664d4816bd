/** Runs a model on the calling thread, in steps: other code has its turn every few milliseconds. */
import { nextTurn } from "../base/event-loop";
import { Engine } from "./engine";
import type { Item, Result, Runner } from "./job";
import type { NetworkOptions } from "./network";
import type { Loaded } from "./place";

/** How long it works without giving way. */
const MILLISECONDS = 4;

/** Fewer tokens at a time than a thread of its own has: no step of a small model takes long. */
const TOKENS = 32;

export class InlineRunner implements Runner {
  readonly facts: Runner["facts"];
  readonly #loaded: Loaded;
  readonly #engine: Engine;
  /** Settles when what was asked for before is done. */
  #before: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  readonly isOver = false;

  constructor(loaded: Loaded, options: NetworkOptions) {
    this.#loaded = loaded;
    this.#engine = new Engine(loaded.file, options, loaded.prompts);
    this.facts = this.#engine.facts;
  }

  run(items: readonly Item[]): Promise<Result[]> {
    const mine = this.#before.then(() => this.#run(items));
    this.#before = mine.catch(() => undefined);
    return mine;
  }

  async #run(items: readonly Item[]): Promise<Result[]> {
    const steps = this.#engine.run(items, TOKENS);
    let began = performance.now();
    for (;;) {
      if (this.#isClosed) return [];
      const { done, value } = steps.next();
      if (done) return value;
      if (performance.now() - began < MILLISECONDS) continue;
      await nextTurn();
      began = performance.now();
    }
  }

  close(): void {
    this.#isClosed = true;
    if (this.#loaded.isOwn) this.#loaded.file.close();
  }
}

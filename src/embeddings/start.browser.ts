/** In place of `start.ts` where there are no threads of Node. */
import { InlineRunner } from "./inline";
import type { StartRunner } from "./job";
import { load, type Place } from "./load";

export type { Place } from "./load";

export const startRunner: StartRunner<Place> = async (place, options, signal) =>
  new InlineRunner(await load(place, signal), options);

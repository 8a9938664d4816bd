/** In place of `start.ts` where there are no threads of Node. */
import { InlineRunner } from "./inline";
import type { StartRunner } from "./job";
import { load } from "./load";
import type { Place } from "./place";

export const startRunner: StartRunner<Place> = async (place, options, signal) =>
  new InlineRunner(await load(place, options, signal), options);

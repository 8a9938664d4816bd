/** The program of the worker: the library, and the session that answers the page. */

import type { FromWorker, ToWorker } from "./lib/protocol";
import { serve } from "./lib/session";
import { library } from "./library";

const answer = serve(library, (message: FromWorker) => postMessage(message));
addEventListener("message", ({ data }: MessageEvent<ToWorker>) => answer(data));

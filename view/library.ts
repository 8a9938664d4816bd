/** The library in the worker, as the session uses it. */
import templateProgram from "virtual:template/worker";
import { dequantizeSync, openBlob, openRemote } from "gguf-native/wasm";
import { nextTurn } from "#dist/base/event-loop";
import type { Library, Model } from "./lib/session";
import { programUrl } from "./program-url";

/** The most milliseconds that a chat template runs. */
const MOST_TIME = 2000;

const templateUrl = programUrl(templateProgram);

export const library: Library = {
  open: (source, options) => ("url" in source ? openUrl(source.url, options) : openBlob(source.files, options)),
  decode: (type, blocks) => dequantizeSync(type, blocks),
  // A template is a program in a file. In a worker of its own it can be ended, whatever it does.
  render(task, signal) {
    const worker = new Worker(templateUrl);
    return new Promise<string>((resolve, reject) => {
      const tooLong = (): void => reject(new Error(`the template takes longer than ${MOST_TIME / 1000} seconds`));
      setTimeout(tooLong, MOST_TIME);
      signal.addEventListener("abort", () => reject(signal.reason));
      worker.addEventListener("error", ({ message }) => reject(new Error(message)));
      worker.addEventListener("message", ({ data }: MessageEvent<{ text: string } | { error: string }>) => {
        if ("text" in data) resolve(data.text);
        else reject(new Error(data.error));
      });
      worker.postMessage(task);
    }).finally(() => worker.terminate());
  },
  breath: nextTurn,
};

/** The most bytes of a file that is fetched whole. */
const MOST_WHOLE = 1 << 26;

const NOT_FETCHED =
  "Failed to fetch: the server cannot be reached, or does not let pages of other sites read it (CORS). Download the file and choose " +
  "it here; or run npx gguf-native view URL, which fetches it without a browser";

/** Opens a file of a server; a small one also where the server has no ranges, as some that are started for a moment. */
async function openUrl(url: string, options: Parameters<Library["open"]>[1]): Promise<Model> {
  try {
    return await openRemote(url, options);
  } catch (error) {
    // Browsers do not say which it is.
    if (/Failed to fetch|NetworkError|Load failed/.test((error as Error).message)) throw new Error(NOT_FETCHED);
    if (((error as Error).cause as { status?: unknown } | undefined)?.status !== 200) throw error;
    const response = await fetch(url, { signal: options.signal });
    const length = Number(response.headers.get("content-length") ?? Number.NaN);
    if (!response.ok || !(length <= MOST_WHOLE)) throw error;
    return openBlob(await response.blob(), options);
  }
}

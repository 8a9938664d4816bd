/** Questions that `gguf-native view` answers, about the models that it was given. */
import { TOKEN_KEY } from "#dist/view-server/entry-page";
import type { CallName, FromWorker, ModelSource } from "../lib/protocol";
import { MessageReader } from "../lib/wire";

/** Options of a question. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Where the server's page is; undefined where the page came from somewhere else. The address no longer says it. */
export const server =
  document.querySelector<HTMLMetaElement>('meta[name="gguf-native-view"]')?.content === "served"
    ? takeServer()
    : undefined;

/** Takes the secret token out of the address, and keeps it for this tab: the server's page at `/` leads back by it. */
function takeServer(): URL {
  const url = new URL(".", location.href);
  try {
    sessionStorage.setItem(TOKEN_KEY, url.pathname.slice(1, -1));
    history.replaceState(null, "", `/${location.search}${location.hash}`);
  } catch {
    // A browser that keeps nothing: the address stays as it is, or reloading would lead nowhere.
  }
  return url;
}

/** Where on the server a model is, as in its URL; undefined for one that is elsewhere. */
export function placeOnServer(source: ModelSource): string | undefined {
  if (server === undefined || !("url" in source) || !source.url.startsWith(server.href)) return undefined;
  return source.url.slice(server.href.length);
}

export async function askServer(
  call: CallName,
  argument: unknown,
  { signal, onProgress }: CallOptions,
): Promise<unknown> {
  const response = await fetch(new URL("ask", server), {
    method: "POST",
    body: JSON.stringify({ call, argument }),
    signal: signal ?? null,
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw new Error("gguf-native view has ended: start it again", { cause: error });
  });
  if (!response.ok || response.body === null) throw new Error((await response.text()).trim());
  const messages = new MessageReader();
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the answer of gguf-native view ended early");
    for (const each of messages.add(value)) {
      const message = each as FromWorker;
      if ("error" in message) throw new Error(message.error);
      if ("result" in message || !("done" in message)) return message.result;
      onProgress?.(message.done, message.total);
    }
  }
}

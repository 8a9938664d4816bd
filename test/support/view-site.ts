/** The server of `gguf-native view`, and requests to it as they are: no client makes them proper ones. */
import { once } from "node:events";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after } from "node:test";
import { projectRoot } from "./paths";

// Not part of the package's interface: loaded from where it was built.
export const viewServer = join(projectRoot, "dist", "view-server", "server.js");
const { serveView } = require(viewServer) as {
  serveView(
    page: string,
    models: readonly SiteModel[],
    port: number,
    startSession?: unknown,
  ): Promise<{ url: string; close(): Promise<void> }>;
};

/** Files on this machine, or what opens a model that is elsewhere. */
export type SiteModel =
  | readonly string[]
  | { name: string; sources?: ReadonlyMap<string, unknown>; open(partial: boolean): Promise<unknown> };

export interface Site {
  url: string;
  port: number;
  /** The path of the page, which begins the paths of the files. */
  base: string;
  close(): Promise<void>;
}

/** Serves until the tests of the calling file are done. */
export async function serveSite(
  page: string,
  models: readonly SiteModel[],
  port = 0,
  startSession?: unknown,
): Promise<Site> {
  const { url, close } = await serveView(page, models, port, startSession);
  let closed: Promise<void> | undefined;
  const closeOnce = () => {
    closed ??= close();
    return closed;
  };
  after(closeOnce);
  const { port: chosen, pathname } = new URL(url);
  return { url, port: Number(chosen), base: pathname, close: closeOnce };
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** One request on a connection of its own. */
export async function ask(
  { port }: { port: number },
  path: string,
  headers: Record<string, string | string[]> = {},
  method = "GET",
): Promise<Answer> {
  const sent = request({ host: "127.0.0.1", port, path, method, agent: false, headers });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { status: response.statusCode as number, headers: response.headers, body: await buffer(response) };
}

/** A request of whose answer nothing is read yet; both may be broken off. */
export async function askPaused(
  { port }: { port: number },
  path: string,
): Promise<{ sent: ClientRequest; response: IncomingMessage }> {
  const sent = request({ host: "127.0.0.1", port, path, agent: false });
  sent.on("error", () => undefined).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.on("error", () => undefined).pause();
  return { sent, response };
}

/** What the server answers to these bytes until it ends the connection. */
export async function askRaw({ port }: { port: number }, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(text);
  return (await buffer(socket)).toString("latin1");
}

/** How many descriptors of a process lead to a path; undefined where the system does not tell. */
export function descriptorsOf(path: string, pid: number | "self" = "self"): number | undefined {
  const folder = `/proc/${pid}/fd`;
  if (process.platform === "win32" || !existsSync(folder)) return undefined;
  const leadsThere = (name: string) => {
    try {
      return readlinkSync(join(folder, name)).startsWith(path);
    } catch {
      return false; // that of the list itself
    }
  };
  return readdirSync(folder).filter(leadsThere).length;
}

/** HTTP servers for tests: one that answers ranges as it should, and whatever else a test makes of it. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface RangeServer {
  url: string;
  /** The requests so far. */
  requests: IncomingMessage[];
}

/** Listens until the tests of the calling file are done. */
export async function serve(handler: Handler): Promise<RangeServer> {
  const requests: IncomingMessage[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(request);
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/model.gguf`, requests };
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The first and last byte that a request asks for. */
export function rangeOf(request: IncomingMessage): [first: number, last: number] {
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  if (match === null) throw new Error(`no range: ${request.headers.range}`);
  return [Number(match[1]), Number(match[2])];
}

/** Answers as a server of static files does. */
export function answerRange(
  request: IncomingMessage,
  response: ServerResponse,
  content: Uint8Array,
  headers: Record<string, string> = {},
): void {
  const [first, last] = rangeOf(request);
  if (first >= content.length) {
    response.writeHead(416, { "content-range": `bytes */${content.length}` }).end();
    return;
  }
  const end = Math.min(last + 1, content.length);
  response.writeHead(206, {
    "content-range": `bytes ${first}-${end - 1}/${content.length}`,
    "content-length": end - first,
    ...headers,
  });
  response.end(content.subarray(first, end));
}

export function rangesOf(content: Uint8Array, headers: Record<string, string> = {}): Handler {
  return (request, response) => answerRange(request, response, content, headers);
}

/**
 * The server of `gguf-native view`: hands out one page, and byte ranges of the files that were named, to a browser on this
 * machine.
 *
 * Any web page, and any program of any user here, can send requests to 127.0.0.1. So every path begins with a token that
 * nobody can guess. A web page that has its own name lead here ("DNS rebinding") is known by `Host`, one that sends its
 * browser here by `Origin` and `Sec-Fetch-Site`. No part of a request reaches the file system: the files are open before
 * the first request, and their names are keys of a map.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type FileHandle, stat } from "node:fs/promises";
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { basename, resolve } from "node:path";
import { openRegularFile } from "../../source/file";
import { Traffic } from "./view-traffic";

const HOST = "127.0.0.1";
const TOKEN_BYTES = 32;

const MAX_HEADER_BYTES = 16 << 10;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** How often these two are looked at. */
const CHECKING_INTERVAL_MS = 1000;

/** A server that is listening. */
export interface ViewServer {
  /** The address of the page, with the models that it opens. */
  readonly url: string;
  /** Ends every answer, and closes the files. */
  close(): Promise<void>;
}

/**
 * Begins to serve.
 * @param page the page as HTML; its own inline scripts and styles are the only ones that run
 * @param models the files of each model; the page opens the first ones
 * @param port 0 for one that the system chooses
 */
export async function serveView(
  page: string,
  models: readonly (readonly [string, ...string[]])[],
  port: number,
): Promise<ViewServer> {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  const opened: ServedFile[] = [];
  const close = async (): Promise<void> => {
    for (const file of opened) await file.close();
  };
  try {
    const files = new Map<string, ServedFile>();
    for (const [i, paths] of models.entries()) {
      for (const path of paths) {
        const file = await ServedFile.open(path);
        opened.push(file);
        files.set(placeOf(i, path), file);
      }
    }
    const site = new Site(page, files, token);
    const server = await listen(site, port);
    const query = models.map(([path], i) => `url=${escapeQuery(urlOf(placeOf(i, path)))}`).join("&");
    return {
      url: `http://${HOST}:${(server.address() as AddressInfo).port}/${token}/?${query}`,
      close: async () => {
        const ended = new Promise((resolve) => server.close(resolve));
        server.closeAllConnections();
        await ended;
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The name of a file for the page, as UTF-8 has it. Files of one name in two folders have the numbers of their models before it. */
function placeOf(model: number, path: string): string {
  return `model/${model}/${Buffer.from(basename(path))}`;
}

function urlOf(place: string): string {
  return place.split("/").map(encodeURIComponent).join("/");
}

function escapeQuery(text: string): string {
  return encodeURIComponent(text).replaceAll("%2F", "/");
}

async function listen(site: Site, port: number): Promise<Server> {
  const options = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECKING_INTERVAL_MS,
  };
  const server = createServer(options);
  site.traffic.watch(server);
  await new Promise<void>((done, fail) => {
    // Later errors are of single connections: they end none of the others.
    server.on("error", (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === "EADDRINUSE" ? "another program uses it" : cause.message;
      fail(new Error(`port ${port} cannot be used: ${reason}; take another --port, or none`, { cause }));
    });
    server.listen({ host: HOST, port, exclusive: true }, done);
  });
  return server;
}

/** What a request gets that gets no file: a status, and why. */
class Refusal {
  readonly status: number;
  readonly reason: string;
  readonly headers: OutgoingHttpHeaders;

  constructor(status: number, reason: string, headers: OutgoingHttpHeaders = {}) {
    this.status = status;
    this.reason = reason;
    this.headers = headers;
  }
}

/** For a request that does not come from the page. */
const CLOSE = { connection: "close" };

class Site {
  readonly traffic = new Traffic((request, response) => this.#answer(request, response));
  readonly #page: Buffer;
  readonly #files: ReadonlyMap<string, ServedFile>;
  readonly #token: string;
  readonly #headers: OutgoingHttpHeaders;

  constructor(page: string, files: ReadonlyMap<string, ServedFile>, token: string) {
    const text = page.replaceAll("\r\n", "\n"); // as a browser reads it before it compares hashes
    this.#page = Buffer.from(text);
    this.#files = files;
    this.#token = token;
    this.#headers = securityHeaders(text);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(this.#headers)) response.setHeader(name, value as string);
    try {
      const place = this.#placeOf(request);
      if (place === "") return sendAll(request, response, this.#page, "text/html; charset=utf-8");
      const file = this.#files.get(place);
      if (file === undefined) throw new Refusal(404, "there is nothing here");
      await sendFile(request, response, file, () => this.traffic.pieceBytes);
    } catch (error) {
      if (error instanceof Refusal) refuse(request, response, error);
      // The file has changed or cannot be read, or the browser is gone. An answer that has begun ends early.
      else if (response.headersSent) response.destroy();
      else refuse(request, response, new Refusal(500, "the file cannot be read"));
    }
  }

  /**
   * What is asked for, after the token: "" for the page. Throws where the request is not one of this site's page, and ends the
   * connection: what comes after such a request is not read.
   */
  #placeOf({ method, url = "", headers, headersDistinct, socket }: IncomingMessage): string {
    const { localPort } = socket;
    const port = localPort === 80 ? "(:80)?" : `:${localPort}`;
    const [host, ...otherHosts] = headersDistinct.host ?? [];
    if (otherHosts.length > 0 || !new RegExp(`^(127\\.0\\.0\\.1|localhost)${port}$`, "i").test(host ?? "")) {
      throw new Refusal(421, "this is not the address of the page", CLOSE);
    }
    if (method !== "GET" && method !== "HEAD") {
      throw new Refusal(405, "files can be read only", { ...CLOSE, allow: "GET, HEAD" });
    }
    const origin = headers.origin ?? `http://${host}`;
    const site = headers["sec-fetch-site"] ?? "none";
    if (
      origin.toLowerCase() !== `http://${host}`.toLowerCase() ||
      !/^(none|same-origin)$/.test(String(site))
    ) {
      throw new Refusal(403, "another site sent you here: paste the address into the browser", CLOSE);
    }
    const [, token = "", place] = /^\/([^/?#]*)\/([^?#]*)/.exec(url) ?? [];
    if (place === undefined || !isSame(token, this.#token)) {
      throw new Refusal(404, "there is nothing here", CLOSE);
    }
    this.traffic.trust(socket);
    try {
      return decodeURIComponent(place);
    } catch {
      throw new Refusal(404, "there is nothing here");
    }
  }
}

/** Whether two texts are the same, in a time that does not tell how much of them is. */
function isSame(a: string, b: string): boolean {
  const [hashA, hashB] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(hashA as Buffer, hashB as Buffer);
}

/** What every answer says: nothing may run or be loaded but what the page brings along, and nobody else may look. */
function securityHeaders(page: string): OutgoingHttpHeaders {
  const hashes = { script: "", style: "" };
  for (const [, element, text] of page.matchAll(/<(script|style)\b[^>]*>(.*?)<\/\1\s*>/gis)) {
    const hash = createHash("sha256")
      .update(text as string)
      .digest("base64");
    hashes[element?.toLowerCase() as "script" | "style"] += `'sha256-${hash}' `;
  }
  const policy = [
    "default-src 'none'",
    `script-src ${hashes.script}'wasm-unsafe-eval'`,
    `style-src ${hashes.style || "'none'"}`,
    ...["worker-src blob:", "connect-src 'self'", "img-src data: blob:"],
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ];
  return {
    "content-security-policy": policy.map((text) => text.trim()).join("; "),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
  };
}

function sendAll(
  { method }: IncomingMessage,
  response: ServerResponse,
  content: Buffer,
  type: string,
  status = 200,
): void {
  response.writeHead(status, { "content-type": type, "content-length": content.length });
  response.end(method === "HEAD" ? undefined : content);
}

function refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const { status, reason, headers } = refusal;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value as string);
  sendAll(request, response, Buffer.from(`${reason}\n`), "text/plain; charset=utf-8", status);
}

/** Answers with a file or one range of it, by the rules of RFC 9110. */
async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: ServedFile,
  pieceBytes: () => number,
): Promise<void> {
  const state = await file.state();
  if (state === undefined)
    throw new Refusal(410, "another file is in its place: end the command, and start it again");
  const { size, etag } = state;
  const { method, headers } = request;
  response.setHeader("etag", etag);
  response.setHeader("accept-ranges", "bytes");
  if (headers["if-match"] !== undefined && !names(headers["if-match"], etag)) {
    throw new Refusal(412, "the file has changed");
  }
  if (headers["if-none-match"] !== undefined && names(headers["if-none-match"], etag)) {
    response.writeHead(304).end();
    return;
  }
  // Ranges are of GET alone. With If-Range, they are of the file that it means, or else the file is sent as it is now.
  const isRanged = method === "GET" && (headers["if-range"] ?? etag) === etag;
  const range = isRanged ? parseRange(headers.range, size) : undefined;
  if (range === "beyond") {
    throw new Refusal(416, `the file has ${size} bytes`, { "content-range": `bytes */${size}` });
  }
  const [begin, end] = range ?? [0, size];
  response.writeHead(range === undefined ? 200 : 206, {
    "content-type": "application/octet-stream",
    "content-length": end - begin,
    ...(range && { "content-range": `bytes ${begin}-${end - 1}/${size}` }),
  });
  if (method !== "HEAD") {
    for await (const piece of file.pieces(begin, end, etag, pieceBytes)) await written(response, piece);
  }
  response.end();
}

/** Settles when the system has the bytes, so that their memory may be used again. */
function written(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

/** Whether a list of ETags has this one, which is strong. */
function names(list: string, etag: string): boolean {
  return list.split(",").some((item) => ["*", etag].includes(item.trim()));
}

/**
 * The bytes that a Range header asks for. Undefined stands for the whole file: where there is no such header, where it
 * breaks the rules, and where it asks for several ranges, which a server need not send.
 */
function parseRange(
  header: string | undefined,
  size: number,
): [begin: number, end: number] | "beyond" | undefined {
  const [, first, last] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? "") ?? [];
  if (first === undefined || last === undefined || (first === "" && last === "")) return undefined;
  if (first !== "" && last !== "" && BigInt(last) < BigInt(first)) return undefined;
  const begin = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  return begin < end ? [begin, end] : "beyond";
}

/** A file that is open as long as it is served. */
class ServedFile {
  readonly #path: string;
  readonly #handle: FileHandle;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  /** @throws GgufError ERR_GGUF_OPEN */
  static async open(path: string): Promise<ServedFile> {
    const { handle } = await openRegularFile(path);
    return new ServedFile(resolve(path), handle);
  }

  /** The file as it is now; undefined where its path leads to another one, or nowhere. */
  async state(): Promise<{ size: number; etag: string } | undefined> {
    const [here, there] = await Promise.all([
      this.#handle.stat({ bigint: true }),
      stat(this.#path, { bigint: true }).catch(() => undefined),
    ]);
    if (here.dev !== there?.dev || here.ino !== there.ino) return undefined;
    // The time of the last change tells of one that puts the time of the last write back.
    const facts = [here.ino, here.size, here.mtimeNs, here.ctimeNs];
    return { size: Number(here.size), etag: `"${facts.map((fact) => fact.toString(36)).join("-")}"` };
  }

  /**
   * The bytes from `begin` to `end` of the file in one state, each piece in the memory of the last one: new memory for
   * each would wait for a collection, and many answers together take too much. Throws as soon as the file is in another
   * state.
   */
  async *pieces(
    begin: number,
    end: number,
    etag: string,
    pieceBytes: () => number,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    let piece = Buffer.alloc(0);
    for (let at = begin; at < end; ) {
      const bytes = Math.min(pieceBytes(), end - at);
      if (piece.length < bytes || piece.length > 2 * bytes) piece = Buffer.allocUnsafeSlow(bytes);
      const { bytesRead } = await this.#handle.read(piece, 0, bytes, at);
      if (bytesRead === 0 || (await this.state())?.etag !== etag) throw new Error("the file has changed");
      yield piece.subarray(0, bytesRead);
      at += bytesRead;
    }
  }

  /** Waits for reads that are under way. */
  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/**
 * The server of `gguf-native view`: hands out one page, and byte ranges of the files that were named, to a browser on this
 * machine, and answers the page's questions about these models.
 *
 * Any web page, and any program of any user here, can send requests to 127.0.0.1. So every path begins with a token that
 * nobody can guess; without it there is only the way back to the page, for the tab that keeps the token. A web page that
 * has its own name lead here ("DNS rebinding") is known by `Host`, one that sends its browser here by `Origin` and
 * `Sec-Fetch-Site`. No part of a request reaches the file system: the files are open before the first request, and their
 * names are keys of a map.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
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
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { openSync } from "../file/open";
import { openRegularFile } from "../source/file";
import type { Source } from "../source/source";
import { entryPage } from "./entry-page";
import { Traffic } from "./traffic";

const HOST = "127.0.0.1";
const TOKEN_BYTES = 32;

const MAX_HEADER_BYTES = 16 << 10;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** How often these two are looked at. */
const CHECKING_INTERVAL_MS = 1000;

/** Questions that are answered at a time: a browser has six connections. */
const MAX_QUESTIONS = 8;
const MAX_QUESTION_BYTES = 1 << 20;
/** How long a whole answer may wait for its reader. */
const UNREAD_TIMEOUT_MS = 60_000;

type Model = GgufModel<GgufModelTensor>;

/** A model on a server, or one of safetensors: the page asks for all of it. */
export interface RemoteModel extends ModelPlace {
  /** The last part of its address. */
  readonly name: string;
  /** The files of a model of GGUF by their names, for a page that compares it with a file of its own. */
  readonly sources?: ReadonlyMap<string, Source>;
}

/** A model that is served: its files on this machine, the named one first, or where else it is. */
export type ServedModel = readonly [path: string, ...others: string[]] | RemoteModel;

/** How the session gets at a model. */
export interface ModelPlace {
  open(partial: boolean): Promise<OpenedModel>;
}

export interface OpenedModel {
  readonly model: Model;
  /** Throws if a file is no longer the one that was opened. */
  check(): Promise<void>;
}

/** Answers questions about models. view/server has it. */
export interface ViewSession {
  /**
   * Begins to answer; gives what cancels it, and undefined for what is no question.
   * @param send takes the parts of the answer
   */
  ask(question: string, send: (bytes: Uint8Array, isLast: boolean) => void): (() => void) | undefined;
  /** Closes all models. */
  close(): void;
}

/** Starts one; `find` gives the model that a URL, which counts from the page's, leads to. */
export type StartSession = (find: (url: string) => ModelPlace | undefined) => ViewSession;

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
 * @param models the page opens the first ones
 * @param port 0 for one that the system chooses
 * @param startSession answers the page's questions; without it the page reads the files by itself
 */
export async function serveView(
  page: string,
  models: readonly ServedModel[],
  port: number,
  startSession?: StartSession,
): Promise<ViewServer> {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  const opened: ServedFile[] = [];
  const places = new Map<string, ModelPlace>();
  const session = startSession?.((url) => places.get(decoded(url) ?? ""));
  const close = async (): Promise<void> => {
    session?.close();
    for (const file of opened) await file.close();
  };
  try {
    const files = new Map<string, BytesOfFile>();
    const named: string[] = [];
    for (const [i, model] of models.entries()) {
      const isRemote = "open" in model;
      const own: ServedFile[] = [];
      for (const path of isRemote ? [] : model) {
        const file = await ServedFile.open(path);
        opened.push(file);
        own.push(file);
        files.set(placeOf("model", i, basename(path)), file);
      }
      const place = isRemote ? placeOf("remote", i, model.name) : placeOf("model", i, basename(model[0]));
      if (isRemote) {
        for (const [name, source] of model.sources ?? []) files.set(placeOf("remote", i, name), handedOn(source));
      }
      places.set(place, isRemote ? model : localPlace(model, own));
      named.push(place);
    }
    const site = new Site(page, files, token, session);
    const server = await listen(site, port);
    const query = named.map((place) => `url=${escapeQuery(urlOf(place))}`).join("&");
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

/**
 * Where a file is for the page, its name as UTF-8 has it. Files of one name in two folders have the numbers of their models
 * before it.
 */
function placeOf(folder: "model" | "remote", model: number, name: string): string {
  return `${folder}/${model}/${Buffer.from(name)}`;
}

/** Answers come from mapped memory, which tells of no change: that of the files is looked at before and after. */
function localPlace([path, ...others]: readonly [string, ...string[]], files: readonly ServedFile[]): ModelPlace {
  const etags = async (): Promise<string> => {
    const states = await Promise.all(files.map((file) => file.state()));
    if (states.includes(undefined)) throw new Error(REPLACED);
    return states.map((state) => state?.etag).join();
  };
  return {
    async open(partial) {
      const before = await etags();
      const model = openSync(path, { partial, splits: others.length > 0 });
      const check = async (): Promise<void> => {
        if ((await etags()) !== before) throw new Error("the file has changed: reload the page");
      };
      return { model, check };
    },
  };
}

/** A part of a URL as text; undefined where it is none. */
export function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
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

/** For a request that does not come from the page, or has more than was read of it. */
const CLOSE = { connection: "close" };

const READ_ONLY = { ...CLOSE, allow: "GET, HEAD" };

const REPLACED = "another file is in its place: end the command, and start it again";

/** What the page says where no server answers its questions, and where one does. */
const [ALONE, SERVED] = [
  '<meta name="gguf-native-view" content="alone">',
  '<meta name="gguf-native-view" content="served">',
];
/** Where the page asks. */
const ASK = "ask";

class Site {
  readonly traffic = new Traffic((request, response) => this.#answer(request, response));
  readonly #page: Buffer;
  readonly #files: ReadonlyMap<string, BytesOfFile>;
  readonly #token: string;
  readonly #session: ViewSession | undefined;
  readonly #headers: OutgoingHttpHeaders;
  #questions = 0;

  constructor(page: string, files: ReadonlyMap<string, BytesOfFile>, token: string, session: ViewSession | undefined) {
    const text = page.replaceAll("\r\n", "\n"); // as a browser reads it before it compares hashes
    this.#page = Buffer.from(session === undefined ? text : text.replace(ALONE, SERVED));
    this.#files = files;
    this.#token = token;
    this.#session = session;
    this.#headers = securityHeaders(text, "'wasm-unsafe-eval'", [
      "worker-src blob:",
      "connect-src 'self'",
      "img-src data: blob:",
    ]);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    setHeaders(response, this.#headers);
    try {
      const place = this.#placeOf(request);
      if (this.#session !== undefined && place === ASK) return await this.#ask(this.#session, request, response);
      if (request.method === "POST") throw new Refusal(405, "files can be read only", READ_ONLY);
      if (place === undefined) {
        setHeaders(response, ENTRY_HEADERS);
        return sendAll(request, response, Buffer.from(ENTRY), HTML);
      }
      if (place === "") return sendAll(request, response, this.#page, HTML);
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

  /** Answers a question. One that nobody waits for any more is cancelled. */
  async #ask(session: ViewSession, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") throw new Refusal(405, "questions are posted", { ...CLOSE, allow: "POST" });
    if (this.#questions >= MAX_QUESTIONS) throw new Refusal(503, "too many questions at once", CLOSE);
    this.#questions++;
    try {
      const question = await bodyOf(request);
      response.setHeader("content-type", "application/octet-stream");
      let unread: NodeJS.Timeout | undefined;
      const cancel = session.ask(question, (bytes, isLast) => {
        // How far it is may be left out.
        if (!isLast && !response.writableNeedDrain) response.write(bytes);
        if (!isLast) return;
        response.end(bytes);
        unread = setTimeout(() => response.destroy(), UNREAD_TIMEOUT_MS);
      });
      if (cancel === undefined) throw new Refusal(400, "this is no question");
      if (!response.closed) await once(response, "close");
      clearTimeout(unread);
      cancel();
    } finally {
      this.#questions--;
    }
  }

  /**
   * What is asked for, after the token: "" for the page, undefined for the way to it, which has no token. Throws where the
   * request is not one of this site's page. What comes after a request without the token is not read.
   */
  #placeOf({ method, url = "", headers, headersDistinct, socket }: IncomingMessage): string | undefined {
    const { localPort } = socket;
    const port = localPort === 80 ? "(:80)?" : `:${localPort}`;
    const [host, ...otherHosts] = headersDistinct.host ?? [];
    if (otherHosts.length > 0 || !new RegExp(`^(127\\.0\\.0\\.1|localhost)${port}$`, "i").test(host ?? "")) {
      throw new Refusal(421, "this is not the address of the page", CLOSE);
    }
    if (!/^(GET|HEAD|POST)$/.test(method ?? "")) throw new Refusal(405, "files can be read only", READ_ONLY);
    const origin = headers.origin ?? `http://${host}`;
    const site = headers["sec-fetch-site"] ?? "none";
    if (origin.toLowerCase() !== `http://${host}`.toLowerCase() || !/^(none|same-origin)$/.test(String(site))) {
      throw new Refusal(403, "another site sent you here: paste the address into the browser", CLOSE);
    }
    if (/^\/(\?|$)/.test(url)) return undefined;
    const [, token = "", place] = /^\/([^/?#]*)\/([^?#]*)/.exec(url) ?? [];
    if (place === undefined || !isSame(token, this.#token)) {
      throw new Refusal(404, "there is nothing here: start from the address that the command printed", CLOSE);
    }
    this.traffic.trust(socket);
    const name = decoded(place);
    if (name === undefined) throw new Refusal(404, "there is nothing here");
    return name;
  }
}

/** Whether two texts are the same, in a time that does not tell how much of them is. */
function isSame(a: string, b: string): boolean {
  const [hashA, hashB] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(hashA as Buffer, hashB as Buffer);
}

/**
 * What every answer says: nothing may run or be loaded but what the page brings along, and nobody else may look.
 * @param scripts what its scripts may do, too
 * @param more directives for what else it loads
 */
function securityHeaders(page: string, scripts = "", more: readonly string[] = []): OutgoingHttpHeaders {
  const hashes = { script: "", style: "" };
  for (const [, element, text] of page.matchAll(/<(script|style)\b[^>]*>(.*?)<\/\1\s*>/gis)) {
    const hash = createHash("sha256")
      .update(text as string)
      .digest("base64");
    hashes[element?.toLowerCase() as "script" | "style"] += `'sha256-${hash}' `;
  }
  const policy = [
    "default-src 'none'",
    `script-src ${hashes.script}${scripts}`,
    `style-src ${hashes.style || "'none'"}`,
    ...more,
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

/** The text of a request, as far as one is taken. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_QUESTION_BYTES) throw new Refusal(413, "the question is too long", CLOSE);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The way to the page, for requests without the token. */
const ENTRY = entryPage();
const ENTRY_HEADERS = { ...securityHeaders(ENTRY), ...CLOSE };

const HTML = "text/html; charset=utf-8";

function setHeaders(response: ServerResponse, headers: OutgoingHttpHeaders): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value as string);
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
  setHeaders(response, headers);
  sendAll(request, response, Buffer.from(`${reason}\n`), "text/plain; charset=utf-8", status);
}

/** Answers with a file or one range of it, by the rules of RFC 9110. */
async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: BytesOfFile,
  pieceBytes: () => number,
): Promise<void> {
  const state = await file.state();
  if (state === undefined) throw new Refusal(410, REPLACED);
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
function parseRange(header: string | undefined, size: number): [begin: number, end: number] | "beyond" | undefined {
  const [, first, last] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? "") ?? [];
  if (first === undefined || last === undefined || (first === "" && last === "")) return undefined;
  if (first !== "" && last !== "" && BigInt(last) < BigInt(first)) return undefined;
  const begin = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  return begin < end ? [begin, end] : "beyond";
}

type BytesOfFile = Pick<ServedFile, "state" | "pieces">;

/** A file of another server, which answers for one state of it. */
function handedOn(source: Source): BytesOfFile {
  return {
    async state() {
      if (source.byteLength === Number.POSITIVE_INFINITY) await source.read(0, new Uint8Array(1));
      return { size: source.byteLength, etag: '"handed-on"' };
    },
    async *pieces(begin, end, _etag, pieceBytes) {
      for (let at = begin; at < end; ) {
        const piece = new Uint8Array(Math.min(pieceBytes(), end - at));
        await source.read(at, piece);
        yield piece;
        at += piece.length;
      }
    },
  };
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

/**
 * What the server of `gguf-native view` admits, so that no client keeps others away or takes its memory: connections that
 * have not shown the token give way to newer ones, and the requests of a connection are answered one by one.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { finished } from "node:stream/promises";

/** A browser has six at a time; a program with the address may read more ranges at once. */
const MAX_CONNECTIONS = 1024;

/** Requests that wait for the one before them. Browsers send none before they have the last answer. */
const MAX_WAITING_HERE = 64;
const MAX_REQUESTS = 4096;

/** What all answers may have read, and not sent, about. Each has read one piece. */
const PIECES_BYTES = 16 << 20;
const LARGEST_PIECE_BYTES = 256 << 10;

type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The requests of a connection. */
interface Queue {
  length: number;
  last: Promise<void>;
}

export class Traffic {
  readonly #answer: Answer;
  readonly #connections = new Set<Socket>();
  /** Those that have not shown the token, the oldest first. */
  readonly #unknown = new Set<Socket>();
  readonly #queues = new WeakMap<Socket, Queue>();
  #requests = 0;
  #answering = 0;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  /** Watches over the connections and requests of a server. */
  watch(server: Server): void {
    server.maxConnections = 2 * MAX_CONNECTIONS; // those that are being closed count
    server.on("connection", (socket: Socket) => this.#admit(socket));
    server.on("request", (request, response) => this.#enqueue(request, response));
  }

  /** The connection has shown the token: it gives way to no other one. */
  trust(socket: Socket): void {
    this.#unknown.delete(socket);
  }

  /** How much an answer may read at a time: less, if there are many. */
  get pieceBytes(): number {
    return Math.min(LARGEST_PIECE_BYTES, Math.ceil(PIECES_BYTES / Math.max(1, this.#answering)));
  }

  #admit(socket: Socket): void {
    this.#connections.add(socket);
    this.#unknown.add(socket);
    socket.once("close", () => this.#forget(socket));
    if (this.#connections.size <= MAX_CONNECTIONS) return;
    const [oldest = socket] = this.#unknown;
    this.#forget(oldest);
    oldest.destroy();
  }

  #forget(socket: Socket): void {
    this.#connections.delete(socket);
    this.#unknown.delete(socket);
  }

  #enqueue(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const queue = this.#queues.get(socket) ?? { length: 0, last: Promise.resolve() };
    this.#queues.set(socket, queue);
    if (queue.length > MAX_WAITING_HERE || this.#requests >= MAX_REQUESTS) socket.destroy();
    if (socket.destroyed) return;
    queue.length++;
    this.#requests++;
    queue.last = queue.last
      .then(() => (socket.destroyed ? undefined : this.#answerInFull(request, response)))
      .catch(() => void socket.destroy())
      .finally(() => {
        queue.length--;
        this.#requests--;
      });
  }

  async #answerInFull(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#answering++;
    try {
      await Promise.all([finished(response), this.#answer(request, response)]);
    } finally {
      this.#answering--;
    }
  }
}

/**
 * A file behind a URL, read by HTTP ranges. A server is not trusted: its answer is the bytes that were asked for, of the
 * file that was opened, or it is an error. No more than these bytes is kept.
 */
import { abortable } from "../base/abortable";
import { GgufError } from "../base/errors";
import { isUint8Array, plain } from "../base/typed-arrays";
import { isOfHub } from "./hub";
import { brokenRequest, refusedRequest, statusError, Transient, withRetries } from "./retry";
import { type Arrived, changedError, type Source } from "./source";
import { publicUrl } from "./url";

/** A transfer that breaks after so many bytes made progress: failures are counted from zero again. */
const PROGRESS_BYTES = 1 << 20;

/** A part that is shorter than what was asked for, but not the end of it, has at least so many bytes. */
const MIN_PART_BYTES = 16 << 10;

/** What a message says of statuses that have a usual cause. */
const EXPLANATIONS: Record<number, string> = {
  401: "the server asks for credentials: give headers: { authorization: ... }",
  403: "the server refuses access: the credentials do not suffice, or the link has expired",
  404: "there is no such file on the server",
  410: "the file was removed from the server",
};

/** What tells one state of a file from another. */
interface State {
  size: number;
  etag: string | null;
  modified: string | null;
}

export class HttpSource implements Source {
  readonly path: string;
  readonly #url: string;
  readonly #fetch: typeof fetch;
  readonly #headers: Headers;
  #state: State | undefined;

  constructor(url: URL, fetchFunction: typeof fetch, headers: Headers) {
    this.#url = url.href;
    this.path = publicUrl(url);
    this.#fetch = fetchFunction;
    this.#headers = headers;
  }

  get byteLength(): number {
    return this.#state?.size ?? Number.POSITIVE_INFINITY;
  }

  /** Transfers that break are continued where they broke. */
  async read(begin: number, target: Uint8Array, signal?: AbortSignal, arrived?: Arrived): Promise<number> {
    let done = 0;
    /** What had arrived at the last failure. */
    let doneBefore = 0;
    const transfer = async (): Promise<void> => {
      while (done < Math.min(target.length, this.byteLength - begin)) {
        signal?.throwIfAborted();
        for await (const chunk of this.#request(begin + done, begin + target.length, signal)) {
          target.set(chunk, done);
          done += chunk.length;
          arrived?.(done);
        }
      }
    };
    await withRetries(transfer, this.#failed, signal, () => {
      const progress = done - doneBefore;
      doneBefore = done;
      return progress >= PROGRESS_BYTES;
    });
    return done;
  }

  /** Nothing is left to do: every answer is checked as it comes. */
  async check(): Promise<void> {}

  /** No connection is held. */
  async close(): Promise<void> {}

  /**
   * One request for the bytes from `begin` to `end`, and what its answer has of them. `fetch` itself asks for bytes that
   * are not compressed wherever a range is asked for.
   */
  async *#request(
    begin: number,
    end: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const last = Math.min(end, this.byteLength) - 1;
    const headers = new Headers(this.#headers);
    headers.set("range", `bytes=${begin}-${last}`);
    const etag = this.#state?.etag;
    if (etag?.startsWith('"')) headers.set("if-range", etag); // a weak one never matches

    const response = await this.#send(headers, signal);
    // Not waited for: nobody needs the rest of an answer.
    const cancel = (): void => void response.body?.cancel().catch(() => undefined);
    let body: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      const length = this.#check(response, begin, last);
      if (length === 0) return cancel();
      if (response.body === null) throw this.#failed("the answer is empty");
      body = response.body.getReader();
      yield* this.#body(body, length, signal);
    } finally {
      if (body === undefined) cancel();
      else body.cancel().catch(() => undefined);
    }
  }

  async #send(headers: Headers, signal: AbortSignal | undefined): Promise<Response> {
    // Not as a method of this object, which the fetch of a browser refuses.
    const send = this.#fetch;
    const sent = send(this.#url, { headers, redirect: "follow", signal: signal ?? null });
    try {
      // The caller's own fetch may ignore signals.
      return await abortable(sent, signal, (response) => response.body?.cancel());
    } catch (error) {
      throw signal?.aborted ? error : brokenRequest("the request failed", error, this.#failed);
    }
  }

  async *#body(
    body: ReadableStreamDefaultReader<Uint8Array>,
    length: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    let left = length;
    while (left > 0) {
      let result: Awaited<ReturnType<typeof body.read>>;
      try {
        result = await abortable(body.read(), signal, () => undefined);
      } catch (error) {
        throw signal?.aborted ? error : brokenRequest("the connection broke", error, this.#failed);
      }
      if (result.done) throw new Transient(`the answer ended ${left} bytes early`, undefined);
      if (!isUint8Array(result.value)) throw this.#failed("the answer is not made of bytes");
      const bytes = plain(result.value);
      if (bytes.length > left) throw this.#failed(`the answer is longer than the ${length} bytes it announced`);
      left -= bytes.length;
      yield bytes;
    }
  }

  /** Checks the head of an answer; returns how many bytes its body must have. */
  #check(response: Response, begin: number, last: number): number {
    const { status } = response;
    const range = response.headers.get("content-range");
    // An empty file has no ranges. Servers say so in two ways.
    const isEmpty =
      status === 416 ? range === "bytes */0" : status === 200 && response.headers.get("content-length") === "0";
    if (isEmpty) {
      this.#checkState(response, 0);
      return 0;
    }
    if (status === 200) throw this.#noRanges(response);
    if (status !== 206) throw this.#refused(response);
    const encoding = response.headers.get("content-encoding");
    if (encoding !== null && encoding !== "identity") {
      throw this.#failed(`the server compresses parts of the file (content-encoding: ${encoding})`);
    }
    const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(range ?? "");
    if (match === null) {
      throw this.#failed(`the answer does not say which part of the file it is (content-range: ${range})`);
    }
    const [from, to, size] = match.slice(1).map(Number) as [number, number, number];
    this.#checkState(response, size);
    const length = to - from + 1;
    const end = Math.min(last, size - 1);
    if (from !== begin || length < 1 || to > end || (to < end && length < MIN_PART_BYTES)) {
      throw this.#failed(`the server sent bytes ${from} to ${to} of ${size} when asked for ${begin} to ${last}`);
    }
    return length;
  }

  /** Remembers the state of the file, or compares with what is remembered. */
  #checkState(response: Response, size: number): void {
    const etag = response.headers.get("etag");
    const modified = response.headers.get("last-modified");
    const before = this.#state;
    if (before === undefined) {
      this.#state = { size, etag, modified };
      return;
    }
    if (size !== before.size) throw changedError(this.path, `its size was ${before.size} and is ${size}`);
    if (etag !== null && before.etag !== null) {
      if (etag !== before.etag) throw changedError(this.path, `its ETag was ${before.etag} and is ${etag}`);
    } else if (modified !== before.modified && modified !== null && before.modified !== null) {
      throw changedError(this.path, `it was modified on ${modified}`);
    }
  }

  /** What a 200 means: the whole file instead of a part. */
  #noRanges(response: Response): GgufError {
    const etag = response.headers.get("etag");
    const before = this.#state;
    if (before?.etag && etag && etag !== before.etag) {
      return changedError(this.path, `its ETag was ${before.etag} and is ${etag}`);
    }
    const cause = statusError(response);
    return this.#failed("the server sends whole files only, not ranges of bytes: download it, and open that", cause);
  }

  #refused(response: Response): GgufError | Transient {
    const { status, statusText } = response;
    const known = EXPLANATIONS[status];
    const answer = `${status}${statusText === "" ? "" : ` ${statusText}`}`;
    const isToken = (status === 401 || status === 403) && isOfHub(new URL(this.#url));
    const hint = isToken ? "; set HF_TOKEN to an access token that may read this repository" : "";
    const detail = known === undefined ? `the server answered ${answer}` : `${known} (${answer})${hint}`;
    if (status === 416 && this.#state !== undefined) return changedError(this.path, "it has become shorter");
    return refusedRequest(response, detail, this.#failed);
  }

  readonly #failed = (detail: string, cause?: unknown): GgufError =>
    new GgufError("ERR_GGUF_OPEN", detail, { path: this.path, cause });
}

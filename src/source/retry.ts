/** Requests that failed and are made again: which, when, how often. */
import type { GgufError } from "../base/errors";
import { delay } from "../base/event-loop";

/** After so many failures in a row, the last one is reported. */
const MAX_FAILURES = 5;

const FIRST_PAUSE_MS = 200;

/** The longest pause, whatever a server asks for. */
const MAX_PAUSE_MS = 10_000;

/** Codes of network errors after which the next try may succeed. */
const TRANSIENT_CODES = new Set([
  "ECONNRESET",
  "ECONNREFUSED",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "UND_ERR_SOCKET",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);

/** A failure that is worth another try. */
export class Transient {
  constructor(
    readonly detail: string,
    readonly cause: unknown,
    /** What the server asks to wait. */
    readonly delayMs = 0,
  ) {}
}

/** Makes the error to report. */
type Failing = (detail: string, cause?: unknown) => GgufError;

/**
 * Tries until it succeeds, or fails for good.
 * @param attempt throws a {@link Transient} where another try is worth it
 * @param failing makes the error of the last try
 * @param progressed whether something was achieved since it was last asked: failures are counted from zero again
 * @throws the reason of the signal, once it is aborted
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  failing: Failing,
  signal: AbortSignal | undefined,
  progressed: () => boolean = () => false,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof Transient)) throw error;
      if (progressed()) failures = 1;
      if (failures === MAX_FAILURES) {
        throw failing(`${error.detail}, ${failures} times in a row`, error.cause);
      }
      await delay(pauseMs(failures, error.delayMs), signal);
    }
  }
}

/** What to throw where a request or a transfer broke. */
export function brokenRequest(what: string, error: unknown, failing: Failing): GgufError | Transient {
  const reason = (error as { cause?: unknown }).cause ?? error;
  const { code, message } = reason as { code?: unknown; message?: unknown };
  const detail = `${what}: ${message || code || String(reason)}`;
  // A cause without a code means that the URL or a redirect broke a rule: too many redirects, a forbidden port or
  // scheme. An error without a cause is from a fetch that tells no more.
  const isTransient = code === undefined ? reason === error : TRANSIENT_CODES.has(String(code));
  return isTransient ? new Transient(detail, error) : failing(detail, error);
}

/** What to throw for an answer that is an error. */
export function refusedRequest(response: Response, detail: string, failing: Failing): GgufError | Transient {
  const cause = statusError(response);
  if (!isTransientStatus(response.status)) return failing(detail, cause);
  return new Transient(detail, cause, retryAfterMs(response.headers));
}

/** The cause of errors about an answer. */
export function statusError({ status, statusText }: Response): Error {
  return Object.assign(new Error(`HTTP ${status} ${statusText}`.trimEnd()), { status });
}

/**
 * Whether the next try may succeed: after 408 (request timeout), 429 (too many requests) and 5xx. Not after 501 (not
 * implemented) and 505 (HTTP version not supported): there, the server never does what it is asked.
 */
function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}

/** What the header retry-after asks to wait: seconds, or until a date. 0 where it says neither. */
function retryAfterMs(headers: Headers): number {
  const value = headers.get("retry-after") ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  // Where the server tells the time, its clock counts, which may differ from ours.
  const now = Date.parse(headers.get("date") ?? "") || Date.now();
  return Math.max(0, Date.parse(value) - now) || 0;
}

/** How long to wait after so many failures in a row: longer each time, with some chance, so that clients spread out. */
function pauseMs(failures: number, wantedMs: number): number {
  const backoff = FIRST_PAUSE_MS * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
  return Math.min(Math.max(backoff, wantedMs), MAX_PAUSE_MS);
}

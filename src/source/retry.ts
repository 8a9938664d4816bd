/** Which failed requests are made again, and when. */

/** After so many failures in a row, the last one is reported. */
export const MAX_FAILURES = 5;

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

export function isTransientCode(code: unknown): boolean {
  return TRANSIENT_CODES.has(String(code));
}

/**
 * Whether the next try may succeed: after 408 (request timeout), 429 (too many requests) and 5xx. Not after 501 (not
 * implemented) and 505 (HTTP version not supported): there, the server never does what it is asked.
 */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}

/** What the header retry-after asks to wait: seconds, or until a date. 0 where it says neither. */
export function retryAfterMs(headers: Headers): number {
  const value = headers.get("retry-after") ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  // Where the server tells the time, its clock counts, which may differ from ours.
  const now = Date.parse(headers.get("date") ?? "") || Date.now();
  return Math.max(0, Date.parse(value) - now) || 0;
}

/** How long to wait after so many failures in a row: longer each time, with some chance, so that clients spread out. */
export function pauseMs(failures: number, wantedMs: number): number {
  const backoff = FIRST_PAUSE_MS * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
  return Math.min(Math.max(backoff, wantedMs), MAX_PAUSE_MS);
}

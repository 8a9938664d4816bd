/** Which failed requests are made again, and when. */

/** So many failures in a row are reported. */
export const MAX_FAILURES = 5;

const FIRST_PAUSE_MS = 200;

/** The longest pause, whatever a server asks for. */
const MAX_PAUSE_MS = 10_000;

/** Codes of network errors that may be gone at the next try. */
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
 * Whether a status may be gone at the next try: 408 (a request that took too long), 429 (too many requests), and 5xx, but
 * for two by which a server says that it never does what is asked: 501 (not implemented) and 505 (version of HTTP).
 */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}

/** What the header retry-after asks to wait: seconds, or until a date. 0 where it says neither. */
export function retryAfterMs(headers: Headers): number {
  const value = headers.get("retry-after") ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  // By the clock of the server, which may be wrong, where it tells the time.
  const now = Date.parse(headers.get("date") ?? "") || Date.now();
  return Math.max(0, Date.parse(value) - now) || 0;
}

/** How long to wait after so many failures in a row: longer each time, and not as long as others do. */
export function pauseMs(failures: number, wantedMs: number): number {
  const backoff = FIRST_PAUSE_MS * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
  return Math.min(Math.max(backoff, wantedMs), MAX_PAUSE_MS);
}

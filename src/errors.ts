/** The errors of this package: {@link GgufError}, and `TypeError`s in Node's own wording for wrong arguments. */
import { getSystemErrorMap, inspect } from "node:util";

/** Every value of {@link GgufError.code}. */
export type GgufErrorCode =
  /** The system refused to open, map or read the file; `cause.code` is its errno name, such as `ENOENT`. */
  | "ERR_GGUF_OPEN"
  /** The file does not start with `GGUF`. */
  | "ERR_GGUF_MAGIC"
  /** A version other than 1, 2 or 3. */
  | "ERR_GGUF_VERSION"
  /** Something that the header announces is past the end of the file. */
  | "ERR_GGUF_TRUNCATED"
  /** Any other broken rule of the format; the message says which, where, and what was found. */
  | "ERR_GGUF_INVALID"
  /** The file was closed. */
  | "ERR_GGUF_CLOSED"
  /** No tensor has that name. */
  | "ERR_GGUF_TENSOR_NOT_FOUND"
  /** A tensor type that cannot be turned into numbers. */
  | "ERR_GGUF_UNSUPPORTED_TYPE"
  /** `start`, `end`, a row index or the size of an output. */
  | "ERR_GGUF_RANGE"
  /** A metadata value of another type than the one asked for. */
  | "ERR_GGUF_METADATA_TYPE"
  /** A metadata integer beyond 2^53, which a `number` cannot hold exactly. */
  | "ERR_GGUF_METADATA_RANGE"
  /** The system refused to write; `cause.code` is its errno name, such as `ENOSPC`. */
  | "ERR_GGUF_WRITE"
  /** A file changed after it was opened: one on a server, or one that is being copied. */
  | "ERR_GGUF_CHANGED"
  /** An allocation failed. */
  | "ERR_GGUF_OUT_OF_MEMORY";

/** What an error is about. */
export interface GgufErrorSubject {
  path?: string | undefined;
  tensor?: string | undefined;
}

/** What a {@link GgufError} knows besides its code. */
export interface GgufErrorContext extends GgufErrorSubject {
  offset?: number | undefined;
  cause?: unknown;
}

/** The same error with another subject. @internal */
export let errorAbout: (error: GgufError, subject: GgufErrorSubject, prefix?: string) => GgufError;

/**
 * An error in a file, or in what was asked of it. `code` tells the cases apart (see
 * {@link GgufErrorCode}); the message reads `model.gguf: tensor 'x': ... (at byte 1234)`.
 */
export class GgufError extends Error {
  /** What went wrong, one of {@link GgufErrorCode}: for programs, as the message is for people. */
  readonly code: GgufErrorCode;
  /** The file, as it was passed to `open`; absent for bytes in memory. */
  declare readonly path?: string;
  /** The byte in the file that the error is about, counted from its start. */
  declare readonly offset?: number;

  readonly #detail: string;

  static {
    errorAbout = (error, subject, prefix = "") => {
      const { code, offset, cause } = error;
      return new GgufError(code, prefix + error.#detail, { ...subject, offset, cause });
    };
  }

  /** @ignore */
  constructor(code: GgufErrorCode, detail: string, context: GgufErrorContext = {}) {
    const { path, tensor, offset, cause } = context;
    const subject =
      (path === undefined ? "" : `${path}: `) + (tensor === undefined ? "" : `tensor '${tensor}': `);
    const where = offset === undefined ? "" : ` (at byte ${offset})`;
    super(`${subject}${detail}${where}`, cause === undefined ? undefined : { cause });
    this.#detail = detail;
    this.code = code;
    if (path !== undefined) this.path = path;
    if (offset !== undefined) this.offset = offset;
  }
}
// On the prototype, as for Node's errors: not listed among an error's own properties.
Object.defineProperty(GgufError.prototype, "name", {
  value: "GgufError",
  configurable: true,
  writable: true,
});

/** The cause of an ERR_GGUF_OPEN: an error as `node:fs` makes them, with `code` (such as `ENOENT`) and `errno`. */
export function systemError(code: string, path: string | undefined): Error {
  const message = path === undefined ? code : `${code}: open '${path}'`;
  const [errno] = [...getSystemErrorMap()].find(([, [name]]) => name === code) ?? [];
  const known = errno === undefined ? { code } : { errno, code };
  return Object.assign(new Error(message), path === undefined ? known : { ...known, syscall: "open", path });
}

/** A TypeError with ERR_INVALID_ARG_TYPE; `expected` reads "of type string or an instance of URL". */
export function invalidArgType(name: string, expected: string, actual: unknown): TypeError {
  const message = `The ${described(name)} must be ${expected}. Received ${received(actual)}`;
  return Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_TYPE" });
}

/** A TypeError with ERR_INVALID_ARG_VALUE, for the right type with a value that means nothing here. */
export function invalidArgValue(name: string, reason: string, actual: unknown): TypeError {
  const message = `The ${described(name)} ${reason}. Received ${inspect(actual)}`;
  return Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_VALUE" });
}

function described(name: string): string {
  return name.includes(".") || name.includes("[") ? `property '${name}'` : `"${name}" argument`;
}

function received(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "object") {
    const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
    return typeof name === "string" && name !== ""
      ? `an instance of ${name}`
      : inspect(value, { depth: -1, colors: false });
  }
  const text = inspect(value, { colors: false });
  return `type ${typeof value} (${text.length > 28 ? `${text.slice(0, 25)}...` : text})`;
}

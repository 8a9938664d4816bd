/**
 * The errors of this package: {@link GgufError}, and for wrong arguments `TypeError`s with the same wording
 * as Node's.
 */

/** Every value of {@link GgufError.code}. */
export type GgufErrorCode =
  /**
   * The system cannot open, map or read the file; `cause.code` is its errno name, such as `ENOENT`. Or the runtime does not
   * compile the WebAssembly module; `cause` is its error.
   */
  | "ERR_GGUF_OPEN"
  /** The file does not start with `GGUF`. */
  | "ERR_GGUF_MAGIC"
  /** A version other than 1, 2 or 3. */
  | "ERR_GGUF_VERSION"
  /** The file ends before something that its header describes. */
  | "ERR_GGUF_TRUNCATED"
  /** The file breaks another rule of the format; the message says which rule, where, and what was found. */
  | "ERR_GGUF_INVALID"
  /** The file was closed. */
  | "ERR_GGUF_CLOSED"
  /** No tensor has that name. */
  | "ERR_GGUF_TENSOR_NOT_FOUND"
  /** A tensor type that cannot be turned into numbers. */
  | "ERR_GGUF_UNSUPPORTED_TYPE"
  /** `start`, `end`, a row index or the size of an output is not valid. */
  | "ERR_GGUF_RANGE"
  /** A metadata value does not have the requested type. */
  | "ERR_GGUF_METADATA_TYPE"
  /** A metadata integer beyond 2^53, which a `number` cannot hold exactly. */
  | "ERR_GGUF_METADATA_RANGE"
  /** The system cannot write; `cause.code` is its errno name, such as `ENOSPC`. */
  | "ERR_GGUF_WRITE"
  /** A file changed after it was opened: one on a server, or one that is being copied. */
  | "ERR_GGUF_CHANGED"
  /** An allocation failed. */
  | "ERR_GGUF_OUT_OF_MEMORY";

/** The subject of an error. */
export interface GgufErrorSubject {
  path?: string | undefined;
  tensor?: string | undefined;
}

/** The details of a {@link GgufError} in addition to its code. */
export interface GgufErrorContext extends GgufErrorSubject {
  offset?: number | undefined;
  cause?: unknown;
}

/** What the errors of every copy of this package have, in whatever realm. */
const brand = Symbol.for("gguf-native.GgufError");

/** The same error with another subject; one of another copy of this package is not changed. @internal */
export let errorAbout: (error: GgufError, subject: GgufErrorSubject, prefix?: string) => GgufError;

/**
 * An error in a file, or in a request for its contents. `code` is the kind of error (see
 * {@link GgufErrorCode}); the message reads `model.gguf: tensor 'x': ... (at byte 1234)`.
 *
 * `error instanceof GgufError` is also true for errors of another copy of this package in the same process, such as one
 * that a test runner loaded into a realm of its own.
 */
export class GgufError extends Error {
  /** The kind of error, one of {@link GgufErrorCode}, for programs. The message is for people. */
  readonly code: GgufErrorCode;
  /** The file, as it was passed to `open`; absent for bytes in memory. */
  declare readonly path?: string;
  /** The position of the error in the file, in bytes from its start. */
  declare readonly offset?: number;

  readonly #detail: string;

  static {
    errorAbout = (error, subject, prefix = "") => {
      if (!(#detail in error)) return error;
      const { code, offset, cause } = error;
      return new GgufError(code, prefix + error.#detail, { ...subject, offset, cause });
    };
  }

  /** @ignore */
  constructor(code: GgufErrorCode, detail: string, context: GgufErrorContext = {}) {
    const { path, tensor, offset, cause } = context;
    const subject = (path === undefined ? "" : `${path}: `) + (tensor === undefined ? "" : `tensor '${tensor}': `);
    const where = offset === undefined ? "" : ` (at byte ${offset})`;
    super(`${subject}${detail}${where}`, cause === undefined ? undefined : { cause });
    this.#detail = detail;
    this.code = code;
    if (path !== undefined) this.path = path;
    if (offset !== undefined) this.offset = offset;
  }
}
// On the prototype, as for Node's errors, so that they are not an error's own properties.
Object.defineProperties(GgufError.prototype, {
  name: { value: "GgufError", configurable: true, writable: true },
  [brand]: { value: true },
});

Object.defineProperty(GgufError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    // A subclass has only its own instances.
    if (this !== GgufError) return Function.prototype[Symbol.hasInstance].call(this as typeof GgufError, value);
    return typeof value === "object" && value !== null && brand in value;
  },
});

/**
 * A TypeError with ERR_INVALID_ARG_TYPE; `expected` is text such as "of type string or an instance of URL".
 */
export function invalidArgType(name: string, expected: string, actual: unknown): TypeError {
  const message = `The ${described(name)} must be ${expected}. Received ${received(actual)}`;
  return Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_TYPE" });
}

/** A TypeError with ERR_INVALID_ARG_VALUE, for a value of the right type that is not valid here. */
export function invalidArgValue(name: string, reason: string, actual: unknown): TypeError {
  const message = `The ${described(name)} ${reason}. Received ${shown(actual)}`;
  return Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_VALUE" });
}

function described(name: string): string {
  return name.includes(".") || name.includes("[") ? `property '${name}'` : `"${name}" argument`;
}

function received(value: unknown): string {
  const text = shown(value);
  if (value === null || value === undefined || typeof value === "function" || typeof value === "object") {
    return text;
  }
  return `type ${typeof value} (${text.length > 28 ? `${text.slice(0, 25)}...` : text})`;
}

/** A value as Node's own messages show it, without `util.inspect`, which browsers lack. */
function shown(value: unknown): string {
  switch (typeof value) {
    case "string": {
      const quoted = JSON.stringify(value);
      return value.includes("'") ? quoted : `'${quoted.slice(1, -1).replaceAll('\\"', '"')}'`;
    }
    case "bigint":
      return `${value}n`;
    case "function":
      return `function ${value.name}`;
    case "object": {
      if (value === null) return "null";
      const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
      return typeof name === "string" ? `an instance of ${name}` : "[Object: null prototype] {}";
    }
    default:
      return Object.is(value, -0) ? "-0" : String(value);
  }
}

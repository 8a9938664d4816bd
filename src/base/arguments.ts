/** Checks of arguments that several functions take. */

import { GgufError, type GgufErrorSubject, invalidArgType } from "./errors";
import type { AsyncOptions } from "./options";
import { didYouMean } from "./suggest";
import { isTypedArray, lengthOf } from "./typed-arrays";

/**
 * The names of all options in `T`: what {@link checkOptions} needs to know. A name that is missing does not compile. One that
 * is "async" a synchronous function accepts, too, but does not list as its own.
 */
export type OptionNames<T> = { readonly [Name in keyof T]-?: true | "async" };
export type KnownNames = Readonly<Record<string, true | "async">>;

/**
 * Returns a copy of `options`: each is read once, and code of the caller that runs then, such as a getter, changes
 * nothing that is checked later.
 * @param known the names that mean something
 * @param arrays the other arguments that may be arrays, whose lengths were checked or will be
 * @throws TypeError ERR_INVALID_ARG_TYPE if it is neither an object nor undefined; ERR_INVALID_ARG_VALUE for a property of
 *   another name: it is misspelt, and would be ignored without a word
 * @throws GgufError ERR_GGUF_RANGE where an array has another length after the options were read
 */
export function checkOptions<T extends object>(
  options: T | undefined,
  known: KnownNames,
  arrays: readonly unknown[] = [],
  subject?: GgufErrorSubject,
  kind?: "sync",
): Partial<T> {
  if (options === undefined) return {};
  checkOptionNames(options, known, kind);
  const before = arrays.map(lengthIfArray);
  const given: Partial<T> = {};
  for (const name in known) {
    const value = options[name as keyof T];
    if (value !== undefined) given[name as keyof T] = value;
  }
  if (arrays.some((array, i) => lengthIfArray(array) !== before[i])) {
    const detail = "an array was detached, moved or resized while the options were read";
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return given;
}

/**
 * Checks the names alone, for functions that take less than a microsecond: they read each option once, and check lengths of
 * arrays after that.
 * @throws TypeError as {@link checkOptions}
 */
export function checkOptionNames(options: unknown, known: KnownNames, kind?: "sync"): void {
  if (typeof options !== "object" || options === null) throw invalidArgType("options", "of type object", options);
  for (const name in options) {
    if (!Object.hasOwn(known, name) && Object.hasOwn(options, name)) throw unknownOption(name, known, kind);
  }
}

function lengthIfArray(value: unknown): number | undefined {
  return isTypedArray(value) ? lengthOf(value) : undefined;
}

function unknownOption(name: string, known: KnownNames, kind: "sync" | undefined): TypeError {
  const names = Object.keys(known).filter((own) => kind !== "sync" || known[own] === true);
  const message = `There is no option '${name}'${didYouMean(name, names) || "."} The options are: ${names.join(", ")}`;
  return Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_VALUE" });
}

export function checkBoolean(name: string, value: unknown, whenAbsent: boolean): boolean {
  if (value === undefined) return whenAbsent;
  if (typeof value !== "boolean") throw invalidArgType(name, "of type boolean", value);
  return value;
}

export function checkSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined) return undefined;
  if (
    typeof signal !== "object" ||
    signal === null ||
    !("throwIfAborted" in signal) ||
    !("addEventListener" in signal)
  ) {
    throw invalidArgType("options.signal", "an instance of AbortSignal", signal);
  }
  return signal as AbortSignal;
}

export function checkProgress(onProgress: unknown): AsyncOptions["onProgress"] {
  if (onProgress === undefined) return undefined;
  if (typeof onProgress !== "function") throw invalidArgType("options.onProgress", "of type function", onProgress);
  return onProgress as AsyncOptions["onProgress"];
}

/** The options of asynchronous work, of which each may be undefined. */
export function checkAsync(options: AsyncOptions | undefined, subject?: GgufErrorSubject): Required<AsyncOptions> {
  const signal = checkSignal(options?.signal);
  const onProgress = checkProgress(options?.onProgress);
  return { signal, onProgress, threads: checkThreads(options?.threads, subject) };
}

/** The names of {@link AsyncOptions}. */
export const ASYNC_OPTIONS: OptionNames<AsyncOptions> = { signal: "async", onProgress: "async", threads: "async" };

/** How many threads may work; undefined where the addon chooses. */
export function checkThreads(threads: unknown, subject?: GgufErrorSubject): number | undefined {
  if (threads === undefined) return undefined;
  if (typeof threads !== "number") throw invalidArgType("options.threads", "of type number", threads);
  if (!Number.isSafeInteger(threads) || threads < 1) {
    const detail = `options.threads must be a positive whole number, found ${threads}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return threads;
}

/** A `Blob` of any realm; another object with its methods fails later. */
export function isBlob(value: unknown): value is Blob {
  return typeof value === "object" && value !== null && "arrayBuffer" in value;
}

/** A URL of any realm; another object with `href` fails later, as no URL. */
export function isUrl(value: unknown): value is URL {
  return typeof value === "object" && value !== null && "href" in value;
}

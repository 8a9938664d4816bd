/** Checks of arguments that several functions take. */

import type { AsyncOptions } from "./decode/options";
import { invalidArgType } from "./errors";

/** Returns `options` as an object; throws ERR_INVALID_ARG_TYPE if it is neither an object nor undefined. */
export function checkOptions<T extends object>(options: T | undefined): Partial<T> {
  if (options === undefined) return {};
  if (typeof options !== "object" || options === null)
    throw invalidArgType("options", "of type object", options);
  return options;
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
  if (typeof onProgress !== "function")
    throw invalidArgType("options.onProgress", "of type function", onProgress);
  return onProgress as AsyncOptions["onProgress"];
}

/** A URL of any realm; another object with `href` fails later, as no URL. */
export function isUrl(value: unknown): value is URL {
  return typeof value === "object" && value !== null && "href" in value;
}

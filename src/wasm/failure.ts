/** What this folder throws: the records of which the facade makes errors, as it does of the addon's. */
import type { Failure } from "../native-surface";

/** Marks each record: {@link NativeAddon.failureMark}. */
export const failureMark: object = Object.freeze({});

export function failure(code: Failure["code"], detail: string, offset?: number): Failure {
  return { mark: failureMark, code, detail, ...(offset !== undefined && { offset }) };
}

/** As the addon says it. */
export const outOfMemory = (): Failure => failure("ERR_GGUF_OUT_OF_MEMORY", "out of memory");

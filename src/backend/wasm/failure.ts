/** The errors of this folder, without the path of a file, which its callers know. */
import { GgufError, type GgufErrorCode } from "../../base/errors";

export function failure(code: GgufErrorCode, detail: string, offset?: number): GgufError {
  return new GgufError(code, detail, { offset });
}

/** As the addon says it. */
export const outOfMemory = (): GgufError => failure("ERR_GGUF_OUT_OF_MEMORY", "out of memory");

/** Arrays that cannot be made. */
import { constants } from "node:buffer";

/** The code of the error for an array of so many elements: no array may have them, or there is no memory for them. */
export const tooLongCode = (length: number): string =>
  constants.MAX_LENGTH < length ? "ERR_GGUF_RANGE" : "ERR_GGUF_OUT_OF_MEMORY";

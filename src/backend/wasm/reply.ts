/** What a call of the module gives back: columns of numbers or text, or an error. */

import type { GgufErrorCode } from "../../base/errors";
import { Decoder } from "../../base/text-decoder";
import { failure } from "./failure";
import type { Instance } from "./module";

const decoder = new Decoder();

/** Hands copies of the columns of a reply to `use`, and frees it. Throws the error that the reply is. */
export function taking<T>(module: Instance, reply: number, use: (columns: ArrayBuffer[]) => T): T {
  const { exports } = module;
  try {
    const columns = Array.from({ length: exports.reply_columns(reply) }, (_, i) => {
      const byteLength = exports.reply_bytes(reply, i) >>> 0;
      return module.copy(exports.reply_column(reply, i) >>> 0, byteLength);
    });
    if (exports.reply_is_error(reply) === 0) return use(columns);
    const [code, detail, offset] = columns as [ArrayBuffer, ArrayBuffer, ArrayBuffer];
    throw failure(
      decoder.decode(code) as GgufErrorCode,
      decoder.decode(detail),
      offset.byteLength === 0 ? undefined : new Float64Array(offset)[0],
    );
  } finally {
    exports.free_reply(reply);
  }
}

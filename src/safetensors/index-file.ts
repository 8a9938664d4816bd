/** Models in several files: `{"metadata": ..., "weight_map": {"NAME": "FILE"}}` says which tensor is in which file. */
import { GgufError } from "../base/errors";
import { Decoder, utf8 } from "../base/text-decoder";
import { JsonFault, JsonReader, quotable } from "./json-reader";

/** Beside the index, with no characters that mean something in a path or a URL. */
const FILE_NAME = /^(?!\.)[\w.-]{1,255}$/;

const decoder = new Decoder("utf-8", { fatal: true });

/**
 * The file of each tensor.
 * @throws GgufError ERR_GGUF_INVALID for an index that breaks a rule, with the byte
 */
export function parseIndex(bytes: Uint8Array, path: string): Map<string, string> {
  const files = new Map<string, string>();
  let text = "";
  try {
    text = decoder.decode(bytes);
    const reader = new JsonReader(text);
    reader.members((name) => {
      if (name !== "weight_map") return reader.skip();
      reader.members((tensor, at) => {
        const file = reader.string();
        if (!FILE_NAME.test(file)) throw new JsonFault(`'${quotable(file)}' is no name of a file beside it`, at);
        files.set(tensor, file);
      });
    });
    reader.end();
    if (files.size === 0) throw new JsonFault("it has no weight_map, or an empty one", 0);
  } catch (error) {
    const isFault = error instanceof JsonFault;
    const detail = isFault ? error.message : "the index is not UTF-8";
    const offset = isFault ? utf8(text.slice(0, error.at)).length : 0;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path, offset });
  }
  return files;
}

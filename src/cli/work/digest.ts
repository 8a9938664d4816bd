/** Work: the SHA-256 of stored bytes. */
import { createHash } from "node:crypto";
import type { Work } from "./pieces";

export function digest(): Work<string> {
  return async (pieces) => {
    const hash = createHash("sha256");
    for await (const piece of pieces) hash.update(piece.bytes()[0] as Uint8Array);
    return hash.digest("hex");
  };
}

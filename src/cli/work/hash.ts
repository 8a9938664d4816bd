/** Work: the SHA-256 of a tensor's bytes. */
import { createHash } from "node:crypto";
import { openSync } from "../../index";
import type { Source } from "./pieces";

/** How much goes to the hash at a time, in bytes. */
const STEP = 2 ** 26;

export function prepare({ path, splits }: Source): (tensor: { name: string }) => string {
  const file = openSync(path, { splits });
  return ({ name }) => {
    const hash = createHash("sha256");
    const bytes = file.tensor(name).bytes();
    for (let at = 0; at < bytes.length; at += STEP) hash.update(bytes.subarray(at, at + STEP));
    return hash.digest("hex");
  };
}

/** Whether two models have the same value under a key. */

import { type GgufMetadata, valueAt } from "../file/metadata";
import { sameValues } from "../file/value-parts";

/** To the bit, types included; values are read only as far as they are the same. A key may be called otherwise in B. */
export function sameValue(a: GgufMetadata, b: GgufMetadata, keyInA: string, keyInB = keyInA): boolean {
  const [inA, inB] = [valueAt(a, keyInA), valueAt(b, keyInB)];
  return inA !== undefined && inB !== undefined && sameValues(inA, inB);
}

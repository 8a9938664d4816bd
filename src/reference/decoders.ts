/** The decoder of every type. */
import type { GgmlType } from "../types";
import { codebooks } from "./codebooks";
import type { Decoder } from "./decoder";
import { floats } from "./floats";
import { integers } from "./integers";
import { kQuants } from "./k-quants";
import { levels } from "./levels";
import { simple } from "./simple";
import { ternary } from "./ternary";

export const decoders: Readonly<Record<GgmlType, Decoder>> = {
  ...floats,
  ...integers,
  ...simple,
  ...levels,
  ...kQuants,
  ...ternary,
  ...codebooks,
};

/** The decoder of every type. */
import { type GgmlType, ggmlTypes } from "../base/types";
import { codebooks } from "./codebooks";
import { type CodeDecoder, type Decoder, numbersOf } from "./decoder";
import { floats } from "./floats";
import { integers } from "./integers";
import { kQuants } from "./k-quants";
import { levels } from "./levels";
import { simple } from "./simple";
import { ternary } from "./ternary";

const ofNumbers = { ...floats, ...integers };
const ofCodes = { ...simple, ...levels, ...kQuants, ...ternary, ...codebooks };

type CodeType = keyof typeof ofCodes;

/** Those of quantized types; undefined for types whose blocks are numbers. */
export const codeDecoders: Readonly<Record<CodeType, CodeDecoder> & Partial<Record<GgmlType, CodeDecoder>>> = ofCodes;

function toNumbers(types: CodeType[]): Record<CodeType, Decoder> {
  const all = types.map((type) => [type, numbersOf(codeDecoders[type], ggmlTypes[type])]);
  return Object.fromEntries(all) as Record<CodeType, Decoder>;
}

/** Those to numbers. */
export const decoders: Readonly<Record<GgmlType, Decoder>> = {
  ...ofNumbers,
  ...toNumbers(Object.keys(ofCodes) as CodeType[]),
};

/** Mixes of types, which `--type` names. */
import { mixOf } from "../../quantize-model/mixes";
import { UsageError } from "./parse";

/** @throws UsageError for a mix that is not known */
export function checkMix(type: string): void {
  try {
    mixOf(type);
  } catch (error) {
    throw new UsageError(`--type: ${(error as Error).message}`);
  }
}

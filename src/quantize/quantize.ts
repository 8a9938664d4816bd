/** Numbers to blocks, natively. */

import { native } from "../backend/native";
import { GgufError } from "../base/errors";
import type { AsyncOptions, OwnBytes, Returned, ThreadOptions } from "../base/options";
import { type GgmlType, isGgmlType } from "../base/types";
import { attempt, runJob } from "../decode/jobs";
import { checkQuantize, type Encoders, type QuantizableType, type QuantizeOptions } from "./request";

let encoders: Encoders | undefined;

/** The types that there are encoders for. */
function findEncoders(): Encoders {
  encoders ??= new Map(
    native
      .formats()
      .filter(({ name, encodes }) => encodes && isGgmlType(name))
      .map(({ name, needsImportance }) => [name, { needsImportance }]),
  );
  return encoders;
}

export function isQuantizable(type: string): type is QuantizableType {
  return findEncoders().has(type);
}

/** Whether blocks of a type can only be made with importance. */
export function needsImportance(type: GgmlType): boolean {
  return findEncoders().get(type)?.needsImportance === true;
}

/** The types that numbers can be made blocks of, in the order of their ids. */
export function quantizableTypes(): QuantizableType[] {
  return [...findEncoders().keys()] as QuantizableType[];
}

/**
 * Turns numbers into blocks of `type`: the opposite of {@link dequantizeSync}, with the loss of the type. Blocks the
 * calling thread, and works on as many as help.
 *
 * The bytes equal those of ggml's reference (`ggml_quantize_chunk`, compiled without contraction to fused multiply-adds), on
 * every machine and for any number of threads. Rows are encoded on their own: for some types, what a block becomes depends
 * on the whole row if there is importance.
 *
 * F32 keeps every number. In F16 and BF16, a NaN stays a NaN and an infinity an infinity; numbers from 65,520 up become
 * infinite in F16. The other types hold finite numbers only. Of these, too, some are too large for the scale of a block,
 * which is then infinite, as ggml writes it.
 *
 * @param type a type that ggml can make blocks of; for IQ1_S, IQ2_XXS and IQ2_XS, `importance` is required
 * @param numbers whole rows, one after the other
 * @returns the blocks, little-endian
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for another type, or where importance is required; ERR_GGUF_RANGE for numbers
 *   that are not whole blocks and rows, or are not finite (what `out` holds is then undefined), for a weight of `importance`
 *   that is not finite or negative, and for an `out` or `importance` of another length
 */
export function quantizeSync<A extends Uint8Array = OwnBytes>(
  type: QuantizableType,
  numbers: Float32Array,
  options?: QuantizeOptions<A> & ThreadOptions,
): Returned<A> {
  const request = checkQuantize(findEncoders(), type, numbers, options, "sync");
  const { info, columns, importance, out, threads, best } = request;
  const result = attempt(
    () => native.quantize(info.id, numbers, columns, importance, out, threads, best),
    (error) => explain(error, request.byteLength),
  );
  return (out ?? result) as Returned<A>;
}

/**
 * As {@link quantizeSync}, off the main thread and on every core; progress is in numbers. Wrong arguments reject the promise.
 * `importance` may change once this has returned; `numbers` must not change until the promise settles. Numbers in memory that
 * JavaScript can take away (by detaching or shortening it) are copied while the work runs, a part at a time; if they are taken
 * away before that, the promise rejects with ERR_GGUF_RANGE. `out` is written directly if its memory cannot be taken away
 * (such as a SharedArrayBuffer), and otherwise at the end.
 *
 * @throws the reason of `options.signal` if it is aborted
 */
export async function quantize<A extends Uint8Array = OwnBytes>(
  type: QuantizableType,
  numbers: Float32Array,
  options?: QuantizeOptions<A> & AsyncOptions,
): Promise<Returned<A>> {
  const request = checkQuantize(findEncoders(), type, numbers, options);
  const { info, columns, importance, out, best, asyncOptions } = request;
  const result = await runJob(
    asyncOptions,
    (...how) => native.quantizeAsync(info.id, numbers, columns, importance, out, ...how, best),
    (error) => explain(error, request.byteLength),
  );
  return (out ?? result) as Returned<A>;
}

/** A RangeError comes from the limits of the runtime, which depend on its version and on the available memory. */
function explain(error: unknown, byteLength: number): unknown {
  if (!(error instanceof RangeError)) return error;
  const detail = `there is no memory for blocks of ${byteLength} bytes: quantize less at a time`;
  return new GgufError("ERR_GGUF_OUT_OF_MEMORY", detail, { cause: error });
}

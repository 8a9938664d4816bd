/** The naming convention of GGUF files: {@link parseFileName}. */
import { invalidArgType } from "../base/errors";
import { isGgmlType } from "../base/types";
import { type ShardNumber, shardNumber } from "./shard-names";

/** The parts of a file name that follows the naming convention. */
export interface GgufFileName {
  /**
   * The role of a companion file: `"mmproj"` (a multimodal projector for a model) or `"mtp"` (heads that
   * predict further tokens).
   */
  sidecar?: "mmproj" | "mtp";
  /** The model: `"Hermes-2-Pro-Llama-3"`. */
  baseName: string;
  /** Its size: `"8x7B"`, `"3.8B-ContextLength4k"`. */
  sizeLabel?: string;
  /** The purpose of its fine-tuning: `"Instruct"`. */
  fineTune?: string;
  /** `"v1.0"` if the name has none, according to the convention. */
  version: string;
  /** How weights are stored: `"Q4_K_M"`. */
  encoding?: string;
  /** `"LoRA"` for an adapter, `"vocab"` for a vocabulary alone; absent for a model. */
  type?: "LoRA" | "vocab";
  /** Which file of a split model it is; `number` counts from 1. */
  shard?: ShardNumber;
}

const SIDECAR = /^(mmproj|mtp)-/;
const SIZE = /^(\d+x)?(\d+\.)?\d+[KMBTQ]$/i;
/** Details after the size: `A3B`, `ContextLength4k`. */
const SIZE_ATTRIBUTE = /^[A-Za-z]+(\d+\.)?\d+[A-Za-z]+$/;
const VERSION = /^v\d+(\.\d+)*$/;
/** Names of mixtures of tensor types: `Q4_K_M`, `IQ3_XXS`, `MXFP4_MOE`. */
const MIXTURE = /^(I?Q\d|TQ\d|MXFP\d|NVFP\d)(_[A-Z0-9]+)*$/i;

/**
 * Splits a file name such as `Mixtral-8x7B-v0.1-Q4_K_M-00001-of-00003.gguf` into its parts:
 *
 *     [sidecar-]baseName[-sizeLabel[-fineTune]][-version][-encoding][-type][-shard].gguf
 *
 * The convention requires a size and a version. Names in use often lack one or both of them; they are
 * accepted, too.
 *
 * @param name a file name, or a path that ends in one
 * @returns null for a name that does not have this form, or that has only a base name
 */
export function parseFileName(name: string): GgufFileName | null {
  if (typeof name !== "string") throw invalidArgType("name", "of type string", name);
  const file = name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1);
  const stem = /^(.+)\.gguf$/i.exec(file)?.[1];
  if (stem === undefined) return null;

  const sidecar = SIDECAR.exec(stem)?.[1] as GgufFileName["sidecar"];
  const shard = shardNumber(file);
  if (shard !== undefined && (shard.number < 1 || shard.number > shard.count)) return null;
  const parts = stem.split("-").slice(sidecar === undefined ? 0 : 1, shard === undefined ? undefined : -3);
  if (parts.includes("")) return null;

  // Parts are removed from the end, if they are valid there. The first part always belongs to the base name.
  const takeLast = (accepts: (part: string) => boolean): string | undefined =>
    parts.length > 1 && accepts(parts.at(-1) as string) ? parts.pop() : undefined;
  const type = takeLast((part) => part === "LoRA" || part === "vocab") as GgufFileName["type"];
  // After a version, anything is an encoding.
  const encoding = takeLast((part) => isEncoding(part) || (VERSION.test(parts.at(-2) ?? "") && !VERSION.test(part)));
  const version = takeLast((part) => VERSION.test(part));

  const sizeAt = parts.findIndex((part, i) => i > 0 && SIZE.test(part));
  const [sizeLabel, fineTune] = sizeAt < 0 ? [] : sizeAndTuning(parts.splice(sizeAt));
  const baseName = parts.join("-");
  if ([sidecar, sizeLabel, version, encoding, type, shard].every((part) => part === undefined)) return null;
  return {
    ...(sidecar && { sidecar }),
    baseName,
    ...(sizeLabel && { sizeLabel }),
    ...(fineTune && { fineTune }),
    version: version ?? "v1.0",
    ...(encoding && { encoding }),
    ...(type && { type }),
    ...(shard && { shard }),
  };
}

function isEncoding(part: string): boolean {
  return isGgmlType(part.toUpperCase()) || MIXTURE.test(part);
}

function sizeAndTuning([size, ...rest]: string[]): [size: string, tuning: string] {
  const attribute = SIZE_ATTRIBUTE.test(rest[0] ?? "") ? `-${rest.shift()}` : "";
  return [`${size}${attribute}`, rest.join("-")];
}

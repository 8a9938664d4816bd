/**
 * The mixes of llama.cpp (v0.5.0), such as Q4_K_M: a file type, the type that most tensors get, and those that get
 * another one. `choose-types.ts` has what does not depend on the mix.
 */
import { GgufError, invalidArgType } from "../base/errors";
import { closest } from "../base/suggest";
import type { GgmlType } from "../base/types";
import { fileTypeNumber } from "../file/file-types";

/** What a tensor does in its layer, as far as mixes tell the difference. */
export type Role =
  | "embedding"
  | "output"
  /** What values are made with, also together with others: attn_v, attn_qkv, attn_kv_b. */
  | "value"
  | "key"
  | "query"
  | "attentionOutput"
  | "down"
  | "gate"
  | "up"
  | "other";

/** What a mix depends on besides the tensor. */
export interface ModelFacts {
  readonly architecture: string;
  /** Blocks of the model, those included that only predict further tokens. */
  readonly layers: number;
  readonly experts: number;
  /** How many heads share a head of keys and values, in the first layer. */
  readonly sharedHeads: number;
  /** Whether there is an importance matrix, for whatever tensors. */
  readonly hasImportance: boolean;
}

/** Where a tensor is among those of its role. */
export interface Place {
  readonly model: ModelFacts;
  /** How many tensors of its role come before it, and how many layers have one. */
  readonly turn: number;
  readonly count: number;
  /** Its layer: `turn`, or where there are several experts what its name says. */
  readonly layer: number;
}

/** The type of a tensor, where that is not the mix's own. */
type Rule = GgmlType | ((place: Place) => GgmlType | undefined);

interface Rules {
  /** What tensors get where nothing else is said. */
  readonly type: GgmlType;
  /** The type of `output.weight`, and of embeddings that serve as it; default: see {@link outputType}. */
  readonly output?: GgmlType;
  readonly embedding?: GgmlType;
  readonly value?: Rule;
  readonly key?: Rule;
  readonly query?: Rule;
  readonly attentionOutput?: Rule;
  readonly down?: Rule;
  readonly gate?: Rule;
  readonly up?: Rule;
  /** Whether its rules are all there is: nothing more for values of large models and for eight experts. */
  readonly isTiny?: boolean;
  /** All matrices get this one, whatever they do. */
  readonly isPure?: boolean;
  /** The type of matrices of experts, where others get Q8_0. */
  readonly expertType?: GgmlType;
  /** Whether Q2_K needs importance here, as the smaller types always do. */
  readonly needsImportance?: boolean;
}

export interface Mix extends Rules {
  /** The number of `general.file_type`. */
  readonly fileType: number;
}

/** Quotients of whole numbers. */
function share(count: number, parts: number): number {
  return Math.floor(count / parts);
}

/** The first eighth, the last one, and every third layer between: a few more bits help most there. */
function wantsMoreBits(layer: number, count: number): boolean {
  const eighth = share(count, 8);
  return layer < eighth || layer >= share(7 * count, 8) || (layer - eighth) % 3 === 2;
}

const isEarly = ({ layer, count }: Place, parts = 8): boolean => layer < share(count, parts);
const isBetween = ({ layer, count }: Place): boolean => layer >= share(count, 8) && layer < share(7 * count, 8);
const sharesHeads = ({ model }: Place): boolean => model.sharedHeads >= 4;
const isFalcon = ({ model }: Place): boolean => model.architecture === "falcon";
const hasEightExperts = ({ model }: Place): boolean => model.experts === 8;

const early =
  (type: GgmlType): Rule =>
  (place) =>
    isEarly(place) ? type : undefined;
const ifSharedHeads =
  (type: GgmlType, otherwise?: GgmlType): Rule =>
  (place) =>
    sharesHeads(place) ? type : otherwise;
/** The output of attention, which Falcon keeps at the mix's type; of eight experts, it gets Q5_K. */
const attentionOutput =
  (type?: GgmlType): Rule =>
  (place) =>
    isFalcon(place) ? undefined : hasEightExperts(place) ? "Q5_K" : type;
/** The first layers are guarded where importance alone would spoil them. */
const earlyWithImportance =
  (type: GgmlType): Rule =>
  (place) =>
    place.model.hasImportance && isEarly(place) ? type : undefined;

/** Mixes of about two bits and less. */
function tiny(type: GgmlType, vital: GgmlType, output?: GgmlType): Rules {
  return {
    ...{ type, output: "Q5_K", embedding: vital, isTiny: true },
    value: (place) => (sharesHeads(place) || place.model.experts >= 4 ? "Q4_K" : vital),
    key: (place) => (hasEightExperts(place) ? "Q4_K" : undefined),
    attentionOutput: (place) => (hasEightExperts(place) ? "Q5_K" : output),
    down: ({ turn, count }) => (turn < share(count, 8) ? vital : undefined),
  };
}

const ternary = { embedding: "Q4_K" } as const;
const iq4: Pick<Rules, "value" | "attentionOutput" | "down"> = {
  value: ifSharedHeads("Q5_K"),
  attentionOutput: attentionOutput(),
  down: (place) => (isEarly(place) && !place.model.hasImportance ? "Q5_K" : undefined),
};
const iq3xs: Rule = (place) => (isBetween(place) ? "IQ3_XXS" : undefined);
const moreBits: Rule = ({ layer, count }) => (wantsMoreBits(layer, count) ? "Q6_K" : undefined);
const moreBitsForValues: Rule = ({ turn, count }) => (wantsMoreBits(turn, count) ? "Q6_K" : undefined);

/** Every mix by its name, which is that of its file type. */
export const MIXES = numbered({
  F32: { type: "F32", isPure: true },
  F16: { type: "F16", isPure: true },
  BF16: { type: "BF16", isPure: true },
  Q8_0: { type: "Q8_0" },
  Q6_K: { type: "Q6_K" },
  Q5_K_M: { type: "Q5_K", value: moreBitsForValues, down: moreBits },
  Q5_K_S: { type: "Q5_K" },
  Q5_1: { type: "Q5_1" },
  Q5_0: { type: "Q5_0", down: earlyWithImportance("Q5_1") },
  Q4_K_M: {
    ...{ type: "Q4_K", value: moreBitsForValues, attentionOutput: attentionOutput() },
    down: (place) => {
      const { layer, count } = place;
      const wantsMore = wantsMoreBits(layer, count);
      if (!isFalcon(place)) return wantsMore ? "Q6_K" : undefined;
      return isEarly(place, 16) ? "Q6_K" : wantsMore ? "Q5_K" : undefined;
    },
  },
  Q4_K_S: {
    ...{ type: "Q4_K", attentionOutput: attentionOutput() },
    value: ({ turn }) => (turn < 4 ? "Q5_K" : undefined),
    down: (place) => (!isFalcon(place) && isEarly(place) ? "Q5_K" : undefined),
  },
  IQ4_NL: { type: "IQ4_NL", ...iq4 },
  IQ4_XS: { type: "IQ4_XS", ...iq4 },
  Q4_1: { type: "Q4_1" },
  Q4_0: { type: "Q4_0", down: earlyWithImportance("Q4_1") },
  MXFP4_MOE: { type: "MXFP4", output: "Q8_0", expertType: "MXFP4" },
  Q3_K_L: {
    ...{ type: "Q3_K", value: "Q5_K" },
    attentionOutput: (place) => (isFalcon(place) ? "Q4_K" : hasEightExperts(place) ? undefined : "Q5_K"),
    down: (place) => (isFalcon(place) ? "Q4_K" : "Q5_K"),
  },
  Q3_K_M: {
    ...{ type: "Q3_K", attentionOutput: attentionOutput("Q4_K") },
    value: ({ turn }) => (turn < 2 ? "Q5_K" : "Q4_K"),
    down: (place) => {
      const { layer, count } = place;
      if (isEarly(place, 16)) return "Q5_K";
      return !isFalcon(place) || wantsMoreBits(layer, count) ? "Q4_K" : undefined;
    },
  },
  Q3_K_S: { type: "Q3_K", attentionOutput: attentionOutput() },
  IQ3_M: {
    ...{ type: "IQ3_S", value: "Q4_K", attentionOutput: attentionOutput("Q4_K") },
    down: (place) => {
      const { layer, count } = place;
      const isMore = isEarly(place) || (hasEightExperts(place) && wantsMoreBits(layer, count));
      return isMore ? "Q4_K" : undefined;
    },
  },
  IQ3_S: { type: "IQ3_S", value: ifSharedHeads("Q4_K"), attentionOutput: attentionOutput() },
  IQ3_XS: {
    ...{ type: "IQ3_S", value: ifSharedHeads("Q4_K"), attentionOutput: attentionOutput() },
    ...{ key: "IQ3_XXS", query: "IQ3_XXS", gate: iq3xs, up: iq3xs },
  },
  IQ3_XXS: {
    ...{ type: "IQ3_XXS", output: "Q5_K", embedding: "IQ3_S", key: "IQ2_S", query: "IQ2_S" },
    value: (place) => (sharesHeads(place) ? "Q4_K" : place.model.hasImportance ? undefined : "IQ3_S"),
    attentionOutput: attentionOutput("IQ3_S"),
    down: (place) => (place.model.hasImportance ? undefined : isEarly(place) ? "Q4_K" : "Q3_K"),
  },
  Q2_K: {
    ...{ type: "Q2_K", value: ifSharedHeads("Q4_K", "Q3_K"), down: "Q3_K" },
    attentionOutput: attentionOutput("Q3_K"),
  },
  Q2_K_S: {
    ...{ type: "Q2_K", value: ifSharedHeads("Q4_K"), down: early("Q4_K") },
    needsImportance: true,
  },
  IQ2_M: tiny("IQ2_S", "IQ3_S", "IQ3_S"),
  IQ2_S: tiny("IQ2_XS", "IQ3_S", "IQ3_S"),
  IQ2_XS: tiny("IQ2_XS", "Q2_K"),
  IQ2_XXS: tiny("IQ2_XXS", "Q2_K"),
  Q2_0: { type: "Q2_0", ...ternary },
  TQ2_0: { type: "TQ2_0", ...ternary },
  IQ1_M: tiny("IQ1_M", "Q2_K", "IQ2_XXS"),
  TQ1_0: { type: "TQ1_0", ...ternary },
  IQ1_S: tiny("IQ1_S", "Q2_K", "IQ2_XXS"),
  Q1_0: { type: "Q1_0" },
});

function numbered<N extends string>(rows: Readonly<Record<N, Rules>>): Readonly<Record<N, Mix>> {
  const mixes = Object.entries<Rules>(rows).map(([name, rules]) => [
    name,
    { ...rules, fileType: fileTypeNumber(name) },
  ]);
  return Object.fromEntries(mixes);
}

/** The name of a mix. */
type MixName = keyof typeof MIXES;

/** Types that no mix of llama.cpp is made of, for all matrices alike. */
const SINGLE_TYPES: Readonly<Record<string, Mix>> = {
  MXFP4: { fileType: MIXES.MXFP4_MOE.fileType, type: "MXFP4", isPure: true },
  ...numbered({ NVFP4: { type: "NVFP4", isPure: true } }),
};

/** Short names that llama.cpp knows as well. */
const ALIASES: Readonly<Record<string, MixName>> = { Q3_K: "Q3_K_M", Q4_K: "Q4_K_M", Q5_K: "Q5_K_M" };

/** What a model can be quantized to, by name. */
const TARGETS: Readonly<Record<string, Mix>> = { ...MIXES, ...SINGLE_TYPES };

/** The names of {@link TARGETS}. */
export const mixNames: readonly string[] = Object.keys(TARGETS);

/**
 * The mix of a name, in upper or lower case.
 * @throws TypeError, GgufError ERR_GGUF_UNSUPPORTED_TYPE for another name
 */
export function mixOf(type: unknown): { name: string; mix: Mix } {
  if (typeof type !== "string") throw invalidArgType("options.type", "of type string", type);
  const upper = type.toUpperCase();
  const name = ALIASES[upper] ?? upper;
  if (Object.hasOwn(TARGETS, name)) return { name, mix: TARGETS[name] as Mix };
  const meant = closest(type, mixNames);
  const hint = meant === undefined ? `; there are ${mixNames.join(", ")}` : `; did you mean ${meant}?`;
  throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", `a model cannot be quantized to ${type}${hint}`);
}

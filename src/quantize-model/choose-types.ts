/** Which type each tensor of a model gets in a mix: the same as in llama.cpp. */
import { GgufError } from "../base/errors";
import { type GgmlType, ggmlTypes } from "../base/types";
import type { GgufMetadata } from "../file/metadata";
import { countOf, countsPerLayer } from "../file/scalars";
import type { Mix, ModelFacts, Place, Role } from "./mixes";

/** What is known of a tensor before its data is read. */
export interface TensorFacts {
  readonly name: string;
  readonly type: string;
  readonly shape: readonly number[];
}

/** What becomes of a tensor. */
export interface TensorChoice {
  /** Undefined where the tensor is copied as it is. */
  readonly type: GgmlType | undefined;
  /** The type that its mix would give it, if its rows were whole blocks of that. */
  readonly wanted?: GgmlType;
  /** Whether the mix decides, rather than its name. */
  readonly isFree?: boolean;
  /** Whether llama.cpp refuses to quantize it without importance: the result would be worthless. */
  readonly needsImportance?: boolean;
}

/** The facts of a model that mixes depend on. What the metadata lacks, or has as something else, counts as 0. */
export function modelFacts(metadata: GgufMetadata, hasImportance: boolean): ModelFacts {
  const architecture = metadata.typeOf("general.architecture")?.type === "string" ? metadata.architecture : "";
  const key = (name: string): string => `${architecture}.${name}`;
  const heads = countsPerLayer(metadata, key("attention.head_count"), 1)?.[0] ?? 0;
  const keyHeads = countsPerLayer(metadata, key("attention.head_count_kv"), 1)?.[0] ?? heads;
  return {
    architecture: architecture ?? "",
    layers: countOf(metadata, key("block_count")) ?? 0,
    experts: countOf(metadata, key("expert_count")) ?? 0,
    sharedHeads: keyHeads === 0 ? 0 : Math.floor(heads / keyHeads),
    hasImportance,
  };
}

/** Parts of names by role; the first that fits counts. */
const ROLES: readonly (readonly [part: string, role: Role])[] = [
  ["attn_qkv.weight", "value"],
  ["attn_kv_b.weight", "value"],
  ["attn_v.weight", "value"],
  ["attn_k.weight", "key"],
  ["attn_q.weight", "query"],
  ["attn_output.weight", "attentionOutput"],
  ["ffn_up", "up"],
  ["ffn_gate", "gate"],
  ["ffn_down", "down"],
];

function roleOf(name: string): Role {
  if (name === "output.weight") return "output";
  if (name === "token_embd.weight" || name === "per_layer_token_embd.weight") return "embedding";
  return ROLES.find(([part]) => name.includes(part))?.[1] ?? "other";
}

/** Whole names of matrices that stay as they are: positions and kinds of tokens. */
const KEPT_NAMES = new Set(["position_embd.weight", "token_types.weight"]);

/** Parts of the names of other matrices that stay: they are small, or sensitive. */
const KEPT_PARTS: readonly string[] = [
  "_norm.weight",
  // What chooses experts.
  ...["ffn_gate_inp.weight", "ffn_gate_tid2eid.weight"],
  // Gemma 3n.
  ...["altup", "laurel", "per_layer_model_proj"],
  // Convolutions, and indexers of sparse attention.
  ...["ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight"],
  // RWKV.
  ...["first", "w0", "w1", "w2", "v0", "v1", "v2", "a0", "a1", "a2", "g1", "g2"].map(rwkv),
  ...["decay_w1", "decay_w2", "lerp_fused"].map(rwkv),
  // Positions relative to each other, as T5 has them.
  "attn_rel_b.weight",
  // Pictures and sound.
  ...[".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd", ".patch_merger"],
  ...["a.rvq.codebook", "mm.a.code_embd"],
];

/** Those of one architecture alone. */
const KEPT_OF: Readonly<Record<string, RegExp>> = {
  "glm5-next":
    /hc_|indexer\.(attn_q_b|attn_k|proj)|indexer_compressor_(gate|ape)|ssm_([fg]_[ab]|beta)\.weight|attn_(kv_a_mqa|[kv]_b)\.weight/,
};

/** Matrices of an architecture that get Q8_0 in every mix of fewer bits. */
const LEAST_Q8_0: Readonly<Record<string, RegExp>> = { "glm5-next": /attn_q_[ab]|nextn\.eh_proj/ };

function rwkv(part: string): string {
  return `time_mix_${part}.weight`;
}

/** Whether a mix changes the type of a tensor at all. */
function isQuantized({ name, shape }: TensorFacts, architecture: string): boolean {
  // Dimensions of 1 at the end are none.
  const isMatrix = shape.slice(1).some((dim) => dim !== 1);
  if (!isMatrix || !name.endsWith("weight") || KEPT_NAMES.has(name)) return false;
  return !KEPT_PARTS.some((part) => name.includes(part)) && !KEPT_OF[architecture]?.test(name);
}

/** The largest models of these architectures: number of layers. Their heads of values are few, and get more bits. */
const LARGE_MODELS: Readonly<Record<string, number>> = {
  llama: 80,
  "llama-embed": 80,
  deci: 80,
  jais2: 68,
  qwen2: 80,
  olmo: 80,
};

/** For rows that are not whole blocks: a type with smaller blocks and no fewer bits. */
const SMALLER_BLOCKS: Partial<Record<GgmlType, GgmlType>> = {
  ...{ IQ1_S: "IQ4_NL", IQ1_M: "IQ4_NL", IQ2_XXS: "IQ4_NL", IQ2_XS: "IQ4_NL", IQ2_S: "IQ4_NL" },
  ...{ IQ3_XXS: "IQ4_NL", IQ3_S: "IQ4_NL", IQ4_XS: "IQ4_NL" },
  ...{ Q2_0: "Q4_0", Q2_K: "Q4_0", Q3_K: "Q4_0", TQ1_0: "Q4_0", TQ2_0: "Q4_0" },
  ...{ Q4_K: "Q5_0", Q5_K: "Q5_1", Q6_K: "Q8_0" },
};

/** Types of so few bits that, without knowing what matters, nothing useful is left. */
export const NEED_IMPORTANCE: ReadonlySet<GgmlType> = new Set([
  "IQ3_XXS",
  "IQ2_XXS",
  "IQ2_XS",
  "IQ2_S",
  "IQ1_M",
  "IQ1_S",
]);

/**
 * What becomes of each tensor, in the order given.
 *
 * @param named the type that a caller gives a tensor by its name, which counts in place of the mix's
 * @throws GgufError ERR_GGUF_INVALID where the mix depends on the layer, and the name of a tensor has none
 */
export function chooseTypes(
  tensors: readonly TensorFacts[],
  mix: Mix,
  model: ModelFacts,
  named: (name: string) => GgmlType | undefined = () => undefined,
): TensorChoice[] {
  const roles = tensors.map(({ name }) => roleOf(name));
  const hasOutput = roles.includes("output");
  const valueCount = roles.filter((role) => role === "value").length;
  const turns = new Map<Role, number>();
  const choices: TensorChoice[] = Array(tensors.length);
  for (const i of inLayerOrder(tensors)) {
    const tensor = tensors[i] as TensorFacts;
    if (!isQuantized(tensor, model.architecture)) {
      choices[i] = { type: undefined };
      continue;
    }
    const role = roles[i] as Role;
    const given = named(tensor.name);
    let wanted = given ?? (mix.isPure ? mix.type : undefined);
    if (LEAST_Q8_0[model.architecture]?.test(tensor.name)) wanted ??= "Q8_0";
    if (wanted === undefined) {
      const turn = turns.get(role) ?? 0;
      turns.set(role, turn + 1);
      const count = role === "value" ? valueCount : model.layers;
      const isOutput = role === "output" || (role === "embedding" && !hasOutput);
      wanted = isOutput
        ? outputType(mix, model, tensor)
        : typeInMix(mix, role, tensor, new TensorPlace(model, tensor.name, turn, count));
    }
    const type = fitting(wanted, tensor.shape[0] as number);
    const isLast = role === "embedding" || role === "output";
    const needsImportance = !isLast && (NEED_IMPORTANCE.has(type) || (type === "Q2_K" && mix.needsImportance === true));
    choices[i] = { type, wanted, needsImportance, isFree: given === undefined };
  }
  return choices;
}

/** The indexes of tensors by layer, then by name: in this order they are counted. */
function inLayerOrder(tensors: readonly TensorFacts[]): number[] {
  const layers = tensors.map(({ name }) => Number(/^blk\.([+-]?\d+)/.exec(name)?.[1] ?? -1));
  const nameOf = (i: number): string => (tensors[i] as TensorFacts).name;
  return [...tensors.keys()].sort((a, b) => {
    const difference = (layers[a] as number) - (layers[b] as number);
    return difference || (nameOf(a) < nameOf(b) ? -1 : 1);
  });
}

class TensorPlace implements Place {
  readonly model: ModelFacts;
  readonly turn: number;
  readonly count: number;
  readonly #name: string;

  constructor(model: ModelFacts, name: string, turn: number, count: number) {
    this.model = model;
    this.turn = turn;
    this.count = count;
    this.#name = name;
  }

  get layer(): number {
    // Experts may have tensors of their own, so these cannot be counted.
    if (this.model.experts <= 1) return this.turn;
    const layer = Number(/^blk\.(\d+)\./.exec(this.#name)?.[1] ?? Number.NaN);
    if (layer < this.count) return layer;
    const detail = `its name should say which of the ${this.count} layers it is in: give its type by name`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { tensor: this.#name });
  }
}

/** What tokens are chosen with gets more bits. */
function outputType(mix: Mix, { architecture }: ModelFacts, { shape }: TensorFacts): GgmlType {
  if (mix.output === "Q8_0" || mix.type === "Q8_0") return "Q8_0";
  const isWhole = (shape[0] as number) % ggmlTypes[mix.type].blockSize === 0;
  if (architecture === "falcon" || !isWhole) return "Q8_0";
  return mix.output ?? "Q6_K";
}

function typeInMix(mix: Mix, role: Role, { shape }: TensorFacts, place: Place): GgmlType {
  const { model } = place;
  if (mix.expertType !== undefined) {
    const hasExperts = (shape[2] ?? 1) > 1;
    // Its attention has matrices of three dimensions, too.
    const isExpert = model.architecture !== "bailingmoe3" || ["up", "gate", "down"].includes(role);
    return hasExperts && isExpert ? mix.expertType : "Q8_0";
  }
  const rule = role === "other" || role === "output" ? undefined : mix[role];
  const type = (typeof rule === "function" ? rule(place) : rule) ?? mix.type;
  if (mix.isTiny) return type;
  const hasEightExperts = model.experts === 8;
  if (hasEightExperts && (role === "value" || role === "key")) return "Q8_0";
  if (role === "value" && isLarge(model) && (type === "Q3_K" || type === "Q4_K")) return "Q5_K";
  return type;
}

function isLarge({ architecture, layers, sharedHeads, experts }: ModelFacts): boolean {
  if (LARGE_MODELS[architecture] !== layers) return false;
  return !architecture.startsWith("llama") || (sharedHeads !== 1 && experts !== 8);
}

/** The type, or another one where rows of so many weights are not whole blocks of it. */
function fitting(type: GgmlType, columns: number): GgmlType {
  const isWhole = (of: GgmlType): boolean => columns % ggmlTypes[of].blockSize === 0;
  if (isWhole(type)) return type;
  const smaller = SMALLER_BLOCKS[type] ?? type;
  return isWhole(smaller) ? smaller : "F16";
}

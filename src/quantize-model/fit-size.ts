/** The types with which a model has a wanted size, and little error: {@link planForSize}. */
import { errorAbout, GgufError } from "../base/errors";
import type { ElementRange } from "../base/ranges";
import { type GgmlType, ggmlTypes } from "../base/types";
import { dequantizeSync } from "../decode/dequantize";
import { GUESSED } from "../file/file-types";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { quantize } from "../quantize/quantize";
import type { QuantizableType, Search } from "../quantize/request";
import { NEED_IMPORTANCE } from "./choose-types";
import type { ImportanceMatrix } from "./importance-matrix";
import { MIXES, type Mix } from "./mixes";
import { type PlannedTensor, planModel } from "./plan";

/** What is chosen from. */
const CANDIDATES: readonly GgmlType[] = [
  ...(["IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "Q2_K", "IQ3_XXS", "IQ3_S", "Q3_K"] as const),
  ...(["IQ4_XS", "Q4_0", "IQ4_NL", "Q4_K", "Q5_0", "Q5_K", "Q5_1", "Q6_K", "Q8_0", "F16"] as const),
];

/** Numbers of a tensor that are measured, and in how many places. */
const SAMPLE_NUMBERS = 2 ** 16;
const SAMPLE_PLACES = 8;

/** So many mixes are measured as well. */
const MIXES_BESIDE = 5;

/** A choice of types, and what comes of it. */
export interface SizedTypes {
  /** The name of the mix; of what was chosen, the wanted size. */
  type: string;
  /** Bytes of the file. */
  byteLength: number;
  /** Bits for each weight, those of norms and other vectors included. */
  bitsPerWeight: number;
  /**
   * How much of what matrices compute is noise: of each, the squared errors of its weights over their squares, both times
   * the importance of their columns; then the mean, in which each counts by the square root of its number of weights. Measured
   * on a sample of rows.
   */
  error: number;
  /** The same as a signal-to-noise ratio in decibels. */
  snr: number;
}

/** What comes of the types that were chosen for a size, and of the mixes whose sizes are nearest to it. */
export interface SizeChoice {
  /** What the new file has. */
  chosen: SizedTypes;
  /** The largest first. */
  mixes: SizedTypes[];
}

/** The most that a model may have: bytes of its file, or bits for each weight. */
export interface WantedSize {
  readonly unit: "bytes" | "bits";
  readonly wanted: number;
}

/** What types are chosen for. */
export interface SizeRequest extends WantedSize {
  readonly model: GgufModel;
  /** Types that tensors get by name. */
  readonly types: unknown;
  readonly importance: ImportanceMatrix | undefined;
  /** Bytes of the file if all tensors kept their types. */
  readonly fullBytes: number;
  readonly how: { readonly search: Search; readonly threads: number | undefined };
  readonly signal: AbortSignal | undefined;
}

/** Some of the elements of a tensor. */
interface Place extends ElementRange {
  readonly width: number;
  readonly matrix: number;
}

/** A type that a tensor may get. */
interface Option {
  readonly type: string;
  /** In bytes. */
  readonly cost: number;
  /** Times {@link countOf}. */
  readonly error: number;
}

/** A plan for a size, and what comes of it. */
export interface SizedPlan {
  readonly name: string;
  readonly plan: PlannedTensor[];
  readonly choice: SizeChoice;
  /** For `general.file_type`: the mix that is nearest, as guessed. */
  readonly fileType: number;
}

/**
 * Chooses a type for each matrix: from the smallest ones on, the next larger type goes where it takes away the most error for
 * its bytes, as long as there is room.
 * @throws GgufError ERR_GGUF_RANGE for a size that is too small, which says what the smallest one is
 */
export async function planForSize(request: SizeRequest): Promise<SizedPlan> {
  const { unit, wanted, model, types, importance } = request;
  const planOf = (mix: Mix): PlannedTensor[] => planModel(model, mix, types, importance);
  const base = planOf({ ...MIXES.Q8_0, isPure: true });
  const sizes = new Sizes(request);
  const room = unit === "bits" ? (wanted * sizes.weights) / 8 : wanted - sizes.headerBytes;
  const cost = (each: PlannedTensor, type: string): number => sizes[unit === "bits" ? "stored" : "inFile"](each, type);
  const costOf = (plan: readonly PlannedTensor[]): number => sum(plan, (each) => cost(each, typeOf(each)));

  const candidates = base.map((each) => candidatesFor(each, importance));
  const costs = base.map((each, i) => (candidates[i] as string[]).map((type) => cost(each, type)));
  const least = sum(costs, (all) => Math.min(...all));
  if (least > room) throw tooSmall(request, sizes, least);

  const beside = Object.entries(MIXES)
    .filter(([, { type }]) => CANDIDATES.includes(type))
    .map(([type, mix]) => ({ type, mix, plan: planOf(mix) }))
    .filter(({ plan }) => !plan.some(({ lacksImportance }) => lacksImportance))
    .map((each) => ({ ...each, away: Math.abs(costOf(each.plan) - room) }))
    .sort((a, b) => a.away - b.away)
    .slice(0, MIXES_BESIDE);
  const errors: ReadonlyMap<string, number>[] = [];
  for (const [i, each] of base.entries()) {
    const others = beside.map(({ plan }) => typeOf(plan[i] as PlannedTensor));
    errors.push(await measure(each, new Set([...(candidates[i] as string[]), ...others]), request));
  }
  const error = (i: number, type: string): number => errors[i]?.get(type) as number;

  const options = candidates.map((all, i) =>
    worthwhile(all.map((type, k) => ({ type, cost: costs[i]?.[k] as number, error: error(i, type) }))),
  );
  // Some of the smallest may be types that cannot hold what was measured.
  const possible = sum(options, ([first]) => (first as Option).cost);
  if (possible > room) throw tooSmall(request, sizes, possible);
  const chosen = fill(options, room);
  const plan = base.map((each, i): PlannedTensor => {
    if (!each.isFree) return each;
    const to = chosen[i] === each.tensor.type ? undefined : (chosen[i] as GgmlType);
    const weights = to === undefined ? undefined : importance?.weights(each.tensor);
    return { ...each, to, wanted: undefined, weights };
  });
  const matrices = sum(base, ({ tensor, isMatrix }) => (isMatrix ? countOf(tensor) : 0));
  const sized = (type: string, of: readonly PlannedTensor[]): SizedTypes => {
    const mean = sum(of, (each, i) => error(i, typeOf(each))) / Math.max(1, matrices);
    const snr = mean === 0 ? Infinity : -10 * Math.log10(mean);
    return { type, byteLength: sizes.ofFile(of), bitsPerWeight: sizes.bits(of), error: mean, snr };
  };
  const name = `${wanted} ${unit}`;
  const mixes = beside.map((each) => sized(each.type, each.plan)).sort((a, b) => b.byteLength - a.byteLength);
  const fileType = GUESSED + (beside[0]?.mix ?? MIXES.F16).fileType;
  return { name, plan, choice: { chosen: sized(name, plan), mixes }, fileType };
}

function tooSmall({ unit, wanted, model, importance }: SizeRequest, sizes: Sizes, least: number): GgufError {
  const bits = Math.ceil((8e3 * least) / sizes.weights) / 1e3;
  const what =
    unit === "bits"
      ? `${wanted} bits for each weight are too few: the smallest possible are ${bits}`
      : `${wanted} bytes are too few: the smallest possible size is ${least + sizes.headerBytes} bytes`;
  const hint = importance === undefined ? "; an importance matrix (importance, --imatrix) allows less" : "";
  return new GgufError("ERR_GGUF_RANGE", what + hint, { path: model.paths[0] });
}

function sum<T>(all: readonly T[], of: (each: T, i: number) => number): number {
  return all.reduce((total, each, i) => total + of(each, i), 0);
}

/** How large tensors are in other types, and the file with them. */
class Sizes {
  readonly weights: number;
  /** Bytes of the file that are not of tensors. */
  readonly headerBytes: number;
  readonly #alignment: number;

  constructor({ model, fullBytes }: SizeRequest) {
    const tensors = [...model.tensors.values()];
    this.#alignment = model.alignment;
    this.weights = sum(tensors, ({ elementCount }) => elementCount);
    this.headerBytes = fullBytes - sum(tensors, ({ byteLength }) => this.#aligned(byteLength));
  }

  stored({ tensor }: PlannedTensor, type: string): number {
    if (type === tensor.type) return tensor.byteLength;
    const { blockSize, typeSize } = ggmlTypes[type as GgmlType];
    return (tensor.elementCount / blockSize) * typeSize;
  }

  inFile(each: PlannedTensor, type: string): number {
    return this.#aligned(this.stored(each, type));
  }

  #aligned(bytes: number): number {
    return Math.ceil(bytes / this.#alignment) * this.#alignment;
  }

  ofFile(plan: readonly PlannedTensor[]): number {
    return sum(plan, (each) => this.inFile(each, typeOf(each))) + this.headerBytes;
  }

  bits(plan: readonly PlannedTensor[]): number {
    return (8 * sum(plan, (each) => this.stored(each, typeOf(each)))) / Math.max(1, this.weights);
  }
}

function typeOf({ to, tensor }: PlannedTensor): string {
  return to ?? tensor.type;
}

/** The types that a tensor may get: the one that it has, which has no error, and smaller ones. */
function candidatesFor(each: PlannedTensor, importance: ImportanceMatrix | undefined): string[] {
  const { tensor, isFree } = each;
  if (!isFree) return [typeOf(each)];
  const bits = (8 * tensor.byteLength) / tensor.elementCount;
  const hasImportance = importance?.weights(tensor) !== undefined;
  const smaller = CANDIDATES.filter(
    (type) =>
      tensor.columns % ggmlTypes[type].blockSize === 0 &&
      (8 * ggmlTypes[type].typeSize) / ggmlTypes[type].blockSize < bits &&
      (hasImportance || !NEED_IMPORTANCE.has(type)),
  );
  return [...smaller, tensor.type];
}

function gain(from: Option, to: Option): number {
  return (from.error - to.error) / (to.cost - from.cost);
}

/** The options on the lower edge, the smallest first: each one takes away less error for its bytes than the one before. */
function worthwhile(options: readonly Option[]): Option[] {
  const kept: Option[] = [];
  const possible = options.filter(({ error }) => Number.isFinite(error));
  for (const next of possible.sort((a, b) => a.cost - b.cost || a.error - b.error)) {
    if (kept.length > 0 && next.error >= (kept.at(-1) as Option).error) continue;
    while (kept.length > 1 && gain(kept.at(-1) as Option, next) >= gain(...(kept.slice(-2) as [Option, Option])))
      kept.pop();
    kept.push(next);
  }
  return kept;
}

/** The type of each tensor: the first of its options, or a later one as far as there is room for `cost`. */
function fill(options: readonly (readonly Option[])[], room: number): string[] {
  const taken = options.map(([first]) => first as Option);
  let left = taken.reduce((rest, { cost }) => rest - cost, room);
  const steps = options.flatMap((all, i) =>
    all.slice(1).map((to, k) => ({ i, from: all[k] as Option, to, gain: gain(all[k] as Option, to) })),
  );
  // Steps of one tensor stay in their order: each gains less than the one before.
  for (const { i, from, to } of steps.sort((a, b) => b.gain - a.gain)) {
    if (taken[i] !== from || to.cost - from.cost > left) continue;
    taken[i] = to;
    left -= to.cost - from.cost;
  }
  return taken.map(({ type }) => type);
}

/** The error of a tensor in each of some types, times {@link countOf}; Infinity where a type cannot hold them. */
async function measure(
  { tensor }: PlannedTensor,
  types: ReadonlySet<string>,
  { importance, how, signal }: SizeRequest,
): Promise<Map<string, number>> {
  signal?.throwIfAborted();
  const errors = new Map([...types].map((type) => [type, 0]));
  const lossy = [...types].filter((type) => type !== tensor.type) as QuantizableType[];
  if (lossy.length === 0 || tensor.elementCount === 0) return errors;
  const weights = importance?.weights(tensor);
  const sample = await Promise.all(
    placesOf(tensor).map(async ({ start, end, width, matrix }) => {
      const [numbers, columns] = await Promise.all([
        tensor.dequantize({ start, end, ...(signal && { signal }) }),
        weights?.of(matrix, signal),
      ]);
      const importance = columns?.subarray(0, width);
      return { numbers, width, importance, signal: weightedSquares(numbers, undefined, importance) };
    }),
  );
  const total = sum(sample, (each) => each.signal);
  for (const type of lossy) {
    const noise = await Promise.all(
      sample.map(async ({ numbers, width, importance }) => {
        const blocks = await quantize(type, numbers, { columns: width, importance, signal, ...how });
        return weightedSquares(numbers, dequantizeSync(type, blocks), importance);
      }),
    ).catch((error: unknown) => {
      const subject = { path: tensor.path, tensor: tensor.name };
      throw error instanceof GgufError ? errorAbout(error, subject) : error;
    });
    const all = sum(noise, (one) => one);
    errors.set(type, all === 0 ? 0 : (countOf(tensor) * all) / total);
  }
  return errors;
}

/**
 * How much the error of a tensor counts. A small matrix is a whole step of the network as a large one is: if all weights
 * counted the same, it would get too few bits, and if all matrices did, a table of embeddings would.
 */
function countOf({ elementCount }: GgufModelTensor): number {
  return Math.sqrt(elementCount);
}

/** The sum of squares of `a`, or of `a - b`, each times the importance of its column. */
function weightedSquares(a: Float32Array, b: Float32Array | undefined, importance: Float32Array | undefined): number {
  const width = importance?.length ?? a.length;
  let total = 0;
  for (let i = 0; i < a.length; i++) {
    const x = (a[i] as number) - (b?.[i] ?? 0);
    total += x * x * (importance?.[i % width] ?? 1);
  }
  return total;
}

/** Where a tensor is measured: whole rows of one of its matrices, of very long ones the beginning. */
function placesOf({ columns, rowCount, shape }: GgufModelTensor): Place[] {
  const width = Math.min(columns, SAMPLE_NUMBERS);
  const height = shape[1] ?? 1;
  const rows = Math.min(height, Math.max(1, Math.floor(SAMPLE_NUMBERS / SAMPLE_PLACES / width)));
  const count = Math.min(SAMPLE_PLACES, Math.ceil(rowCount / rows), Math.max(1, Math.floor(SAMPLE_NUMBERS / width)));
  return Array.from({ length: count }, (_, i) => {
    const first = Math.floor((i * (rowCount - rows)) / Math.max(1, count - 1));
    const matrix = Math.floor(first / height);
    const start = Math.min(first, (matrix + 1) * height - rows) * columns;
    // A fourth dimension has no weights of its own.
    return { start, end: start + rows * width, width, matrix: matrix % (shape[2] ?? 1) };
  });
}

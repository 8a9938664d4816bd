/** What becomes of each tensor of a model, before any of them is read. */

import { GgufError, invalidArgType } from "../base/errors";
import { globMatcher, isGlob } from "../base/glob";
import { type GgmlType, ggmlTypes, isGgmlType, meantType } from "../base/types";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { isQuantizable, needsImportance, quantizableTypes } from "../quantize/quantize";
import type { QuantizableType } from "../quantize/request";
import { chooseTypes, modelFacts, type TensorChoice } from "./choose-types";
import type { ColumnWeights, ImportanceMatrix } from "./importance-matrix";
import type { Mix } from "./mixes";

/** A tensor of the model, and what becomes of it. */
export interface PlannedTensor {
  readonly tensor: GgufModelTensor;
  /** Its new type; undefined where it is copied as it is. */
  readonly to: GgmlType | undefined;
  /** The type that its mix has for it, if its rows are no whole blocks of that. */
  readonly wanted: GgmlType | undefined;
  /** Whether it needs importance that it lacks. */
  readonly lacksImportance: boolean;
  readonly weights: ColumnWeights | undefined;
  /** The tensor of the model that adapters are added to, of which `tensor` is the sum. */
  readonly merged?: GgufModelTensor;
  /** Whether it is a matrix that mixes change, and whether its mix decides how, rather than its name. */
  readonly isMatrix?: boolean;
  readonly isFree?: boolean;
}

/** The longest row with weights of importance: all of it is in memory at a time. */
const MOST_COLUMNS = 2 ** 24;

/**
 * @param types the types of tensors by their names, or globs of these
 * @throws TypeError, GgufError for `types` that fit no tensor, and where the mix or the importance matrix does not fit the
 *   model
 */
export function planModel(
  model: GgufModel,
  mix: Mix,
  types: unknown,
  importance: ImportanceMatrix | undefined,
): PlannedTensor[] {
  const tensors = [...model.tensors.values()];
  const named = new NamedTypes(types);
  const facts = modelFacts(model.metadata, importance !== undefined);
  const choices = chooseTypes(tensors, mix, facts, (name) => named.of(name));
  named.checkUsed(model);
  return tensors.map((tensor, i) => {
    const { type, wanted, needsImportance: needs = false, isFree = false } = choices[i] as TensorChoice;
    const isMatrix = type !== undefined && !isInteger(tensor);
    const isCopied = !isMatrix || type === tensor.type;
    const lacks = !isCopied && needs && tensor.elementCount > 0;
    const weights = isCopied ? undefined : importance?.weights(tensor);
    return {
      tensor,
      to: isCopied ? undefined : type,
      wanted: isCopied || wanted === type ? undefined : wanted,
      lacksImportance: lacks && weights === undefined,
      ...{ weights, isMatrix, isFree: isMatrix && isFree },
    };
  });
}

/**
 * Checks that a tensor can be quantized as planned.
 * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE, ERR_GGUF_INVALID without importance where it is needed, ERR_GGUF_RANGE
 */
export function checkPlanned(
  { tensor, to, lacksImportance, weights }: PlannedTensor,
  importance: ImportanceMatrix | undefined,
  allowRequantize: boolean,
): void {
  if (to === undefined) return;
  const { type, name, path } = tensor;
  const refused = (code: "ERR_GGUF_UNSUPPORTED_TYPE" | "ERR_GGUF_INVALID" | "ERR_GGUF_RANGE", detail: string) =>
    new GgufError(code, detail, { path, tensor: name });
  if (!isQuantizable(to)) {
    const detail = `it would get the type ${to}, but blocks can be made only of ${quantizableTypes().join(", ")}`;
    throw refused("ERR_GGUF_UNSUPPORTED_TYPE", detail);
  }
  if (tensor.scale !== undefined) {
    const detail = `it has a second scale, the tensor '${tensor.scale.name}', which ${to} has no place for`;
    throw refused("ERR_GGUF_UNSUPPORTED_TYPE", detail);
  }
  if (!allowRequantize && isBlocks(type as GgmlType) && isBlocks(to)) {
    const detail = `it is quantized already, as ${type}, and loses more if that is rounded again than if the original is: start from F32, F16 or BF16, or allow it (allowRequantize, --allow-requantize)`;
    throw refused("ERR_GGUF_UNSUPPORTED_TYPE", detail);
  }
  // Embeddings may do without, in mixes that give them such a type by name.
  if (lacksImportance || (weights === undefined && needsImportance(to) && tensor.elementCount > 0)) {
    const detail =
      importance === undefined
        ? `${to} needs an importance matrix (importance, --imatrix): without one the result is worthless`
        : `${to} needs importance, and the importance matrix has no entry for this tensor`;
    throw refused("ERR_GGUF_INVALID", detail);
  }
  if (weights !== undefined && (tensor.shape[0] as number) > MOST_COLUMNS) {
    const detail = `its rows have ${tensor.shape[0]} weights, more than ${MOST_COLUMNS} with importance`;
    throw refused("ERR_GGUF_RANGE", detail);
  }
}

/** Whether a type has blocks of several weights: whether it is quantized. */
function isBlocks(type: GgmlType): boolean {
  return ggmlTypes[type].blockSize > 1;
}

function isInteger({ type }: GgufModelTensor): boolean {
  return type === "I8" || type === "I16" || type === "I32" || type === "I64";
}

/** Types of tensors that a caller names. An exact name counts first, then the first glob. */
class NamedTypes {
  readonly #exact = new Map<string, QuantizableType>();
  readonly #globs: { pattern: string; matches: (name: string) => boolean; type: QuantizableType }[] = [];
  readonly #used = new Set<string>();

  constructor(types: unknown) {
    if (types === undefined) return;
    if (typeof types !== "object" || types === null) throw invalidArgType("options.tensors", "of type object", types);
    for (const [pattern, type] of Object.entries(types)) {
      this.#exact.set(pattern, checkNamedType(pattern, type));
      if (isGlob(pattern)) this.#globs.push({ pattern, matches: globMatcher(pattern), type });
    }
  }

  of(name: string): GgmlType | undefined {
    this.#used.add(name);
    const fitting = this.#globs.filter(({ matches }) => matches(name));
    for (const { pattern } of fitting) this.#used.add(pattern);
    return this.#exact.get(name) ?? fitting[0]?.type;
  }

  /** @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND for a name that no tensor has which is quantized at all */
  checkUsed(model: GgufModel): void {
    for (const pattern of this.#exact.keys()) {
      if (this.#used.has(pattern)) continue;
      // An error with the name that was probably meant.
      if (!isGlob(pattern)) model.tensor(pattern);
      const detail = model.tensors.has(pattern)
        ? `the tensor '${pattern}' keeps its type: only matrices of weights are quantized, and no norms`
        : `no tensor that is quantized has a name that matches '${pattern}'`;
      throw new GgufError("ERR_GGUF_TENSOR_NOT_FOUND", detail, { path: model.paths[0] });
    }
  }
}

function checkNamedType(pattern: string, type: unknown): QuantizableType {
  if (typeof type !== "string") throw invalidArgType(`options.tensors['${pattern}']`, "of type string", type);
  if (isQuantizable(type)) return type;
  const detail = isGgmlType(type)
    ? `'${pattern}' cannot get the type ${type}: blocks can be made of ${quantizableTypes().join(", ")}`
    : `'${pattern}' cannot get the type ${type}, which is not known${meantType(type)}`;
  throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail);
}

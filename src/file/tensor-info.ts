/** What is known of a tensor without its data: the part that tensors of local and of remote files have in common. */
import { inspect } from "node:util";
import { checkSupported } from "../decode/dequantize";
import { checkOptions, checkRange, type DequantizeOptions, type Range } from "../decode/options";
import type { GgufErrorSubject } from "../errors";
import { type NativeTensors, native } from "../native";
import { type GgmlType, type GgmlTypeInfo, typeName } from "../types";
import { handleOf, illegalConstructor, indexNames, type OpenFile, PRIVATE } from "./handle";

/** Which tensor of which open file. @internal */
export interface TensorPlace<F extends OpenFile = OpenFile> {
  readonly file: F;
  readonly columns: NativeTensors;
  readonly position: number;
  readonly name: string;
}

/** What a tensor is. Readable for ever, also once its file is closed. */
export abstract class GgufTensorInfo {
  readonly #place: TensorPlace;
  #shape: readonly number[] | undefined;

  /** @internal */
  protected constructor(key: typeof PRIVATE, place: TensorPlace) {
    if (key !== PRIVATE) throw illegalConstructor("tensors come with an open file");
    this.#place = place;
  }

  /** The name in the file, made unique where two look alike. */
  get name(): string {
    return this.#place.name;
  }

  /** The type's name; `unknown(NUMBER)` for a number that is not in {@link ggmlTypes}. */
  get type(): GgmlType | `unknown(${number})` {
    const { columns, position } = this.#place;
    return typeName(columns.types[position] as number);
  }

  /** As stored, one to four dimensions: `shape[0]` is the contiguous one (ggml's `ne`). */
  get shape(): readonly number[] {
    if (this.#shape === undefined) {
      const { columns, position } = this.#place;
      const first = position * 4;
      const shape = Array.from(
        columns.shapes.subarray(first, first + (columns.dimCounts[position] as number)),
      );
      this.#shape = Object.freeze(shape);
    }
    return this.#shape;
  }

  /** The product of `shape`. */
  get elementCount(): number {
    const { columns, position } = this.#place;
    return columns.elementCounts[position] as number;
  }

  /** Bytes in the file; NaN for an unknown type. */
  get byteLength(): number {
    const { columns, position } = this.#place;
    return columns.byteLengths[position] as number;
  }

  /** The tensor's first byte, counted from the start of its file. */
  get offset(): number {
    const { columns, position } = this.#place;
    return columns.offsets[position] as number;
  }

  /** The file that the tensor is in, which of a split model is one of several; undefined for bytes in memory. */
  get path(): string | undefined {
    return this.#place.file.path;
  }

  /** What this is, for `JSON.stringify`: no data. */
  toJSON(): Record<string, unknown> {
    const { name, type, shape, elementCount, byteLength, offset } = this;
    return { name, type, shape, elementCount, byteLength, offset };
  }

  /** @internal */
  [inspect.custom](depth: number, options: object, inspectValue: typeof inspect): string {
    const { name } = this.constructor;
    return depth < 0 ? `[${name}]` : `${name} ${inspectValue(this.toJSON(), options)}`;
  }

  /** What errors about this tensor are about. @internal */
  protected subject(): GgufErrorSubject {
    return { path: this.path, tensor: this.name };
  }

  /** The type's row of {@link ggmlTypes}; throws ERR_GGUF_UNSUPPORTED_TYPE where there is no kernel for it. @internal */
  protected known(): GgmlTypeInfo {
    return checkSupported(this.type, this.subject());
  }

  /** Checks what is asked for; throws ERR_GGUF_CLOSED too. @internal */
  protected range(options: DequantizeOptions | undefined): Range {
    checkOptions(options);
    handleOf(this.#place.file);
    return checkRange(options, this.elementCount, this.known().blockSize, this.subject());
  }
}

/** The tensors of an open file by name, in file order, each made by `create`. @internal */
export function listTensors<F extends OpenFile, T>(
  file: F,
  create: (place: TensorPlace<F>) => T,
): Map<string, T> {
  const columns = native.tensors(handleOf(file));
  const tensors = new Map<string, T>();
  for (const [name, position] of indexNames(columns.names)) {
    tensors.set(name, create({ file, columns, position, name }));
  }
  return tensors;
}

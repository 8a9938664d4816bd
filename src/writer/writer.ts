/** Writing GGUF files: {@link GgufWriter}. */

import { inspect } from "node:util";
import { native } from "../backend/native";
import { checkOptions, type OptionNames } from "../base/arguments";
import { joinBytes } from "../base/bytes";
import { GgufError, type GgufErrorSubject, invalidArgType, invalidArgValue } from "../base/errors";
import { didYouMean } from "../base/suggest";
import { type GgmlType, ggmlTypes, isGgmlType, MAX_TENSOR_NAME_BYTES, meantType } from "../base/types";
import { checkSupported } from "../decode/kernels";
import { valueAt } from "../file/metadata";
import { ALIGNMENT_KEY, QUANTIZATION_VERSION_KEY } from "../file/metadata-keys";
import { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { checkPath } from "../file/open";
import { SPLIT_KEYS } from "../file/splits";
import type { ValuePlace } from "../file/value-parts";
import { CURRENT_FORMAT, type HeaderFormat } from "../layout/header-bytes";
import {
  type Contents,
  checkCount,
  DEFAULT_ALIGNMENT,
  fileChunks,
  layOut,
  PIECE_BYTES,
  type TensorEntry,
} from "../layout/layout";
import { type CheckedData, checkData, type DataTarget, dataPieces, type TensorData } from "./data";
import {
  checkKey,
  checkText,
  checkType,
  copyEntry,
  type DeclaredType,
  encodeEntry,
  type GgufInput,
  type GgufInputType,
} from "./values";
import { checkWriteOptions, type WriteOptions } from "./write-options";
import { type Output, writeOutputs } from "./write-outputs";

/** Options of {@link GgufWriter}. */
export interface GgufWriterOptions {
  /** What tensor data is aligned to, in bytes: a power of two; default 32. Another one is written as `general.alignment`. */
  alignment?: number | undefined;
  /**
   * The byte order of every number in the file; default `"little"`. Data of tensors is always given little-endian; its
   * bytes are swapped when it is written.
   */
  byteOrder?: "little" | "big" | undefined;
}

/** Options of {@link GgufWriter.from}: the alignment is that of the model. */
export type GgufWriterFromOptions = Pick<GgufWriterOptions, "byteOrder">;

const FROM_OPTIONS: OptionNames<GgufWriterFromOptions> = { byteOrder: true };
const WRITER_OPTIONS: OptionNames<GgufWriterOptions> = { alignment: true, ...FROM_OPTIONS };

interface WrittenTensor extends TensorEntry {
  readonly target: DataTarget;
  readonly data: CheckedData;
}

const MAX_DIMS = 4;

/** The version of ggml's blocks as they are now. */
const QUANTIZATION_VERSION = 2;

/**
 * Writes a GGUF file (version 3): metadata of every type, and tensors from bytes.
 *
 * ```js
 * await new GgufWriter()
 *   .set("general.architecture", "llama")
 *   .set("llama.context_length", 4096)
 *   .addTensor("output_norm.weight", "F32", [4096], new Float32Array(4096))
 *   .write("model.gguf");
 * ```
 *
 * {@link GgufWriter.from} begins with everything that a model has:
 *
 * ```js
 * using file = openSync("model.gguf");
 * await GgufWriter.from(file)
 *   .set("general.name", "Another name")
 *   .removeTensor("output.weight")
 *   .addTensor("output_norm.weight", "F16", [4096], file.tensor("output_norm.weight").dequantizeSync())
 *   .write("changed.gguf");
 * ```
 *
 * Where quantized tensors were added, and `general.quantization_version` was not set, it is written as 2.
 *
 * Metadata is kept in bytes from the moment it is set. Tensor data is only referred to: it is read when the file is
 * written, and needs no more memory than one piece of it at a time.
 */
export class GgufWriter {
  readonly #entries = new Map<string, Uint8Array>();
  #tensors = new Map<string, WrittenTensor>();
  /** What was copied and not yet changed: keys with their types, and names of tensors. */
  readonly #copiedKeys = new Map<string, DeclaredType | undefined>();
  #copiedTensors = new Set<string>();
  /** The files of the model that was copied. */
  #copiedFrom: readonly string[] = [];
  readonly #format: HeaderFormat;
  #alignment = DEFAULT_ALIGNMENT;

  /** @throws GgufError ERR_GGUF_INVALID for an alignment that is not a power of two */
  constructor(options?: GgufWriterOptions) {
    const { alignment, byteOrder = "little" } = checkOptions(options, WRITER_OPTIONS);
    if (byteOrder !== "little" && byteOrder !== "big") {
      throw invalidArgValue("options.byteOrder", 'must be "little" or "big"', byteOrder);
    }
    this.#format = { ...CURRENT_FORMAT, bigEndian: byteOrder === "big" };
    if (alignment === undefined) return;
    if (typeof alignment !== "number") throw invalidArgType("options.alignment", "of type number", alignment);
    this.set(ALIGNMENT_KEY, alignment);
  }

  /**
   * A writer that has all metadata and tensors of a model, to be changed with {@link set}, {@link addTensor},
   * {@link removeMetadata} and {@link removeTensor}. What is changed keeps its place, and a key its type unless another is
   * given.
   *
   * Everything is copied as bytes, so text that is not UTF-8 stays what it is. Tensor data is read a piece at a time when
   * the file is written; until then the model must stay open. The new file is one file, of version 3 and, without
   * `byteOrder`, little-endian, whatever the model is: in several files, on a server or big-endian. `split.*` keys are left
   * out.
   *
   * @param model an open model: of `open`, `openSync`, `parse` or `openRemote`
   * @throws TypeError for anything else, such as a path
   * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for a model with a tensor of an unknown type; ERR_GGUF_RANGE for one of more
   *   than 2^20 keys or tensors; ERR_GGUF_CLOSED
   */
  static from(model: GgufModel, options?: GgufWriterFromOptions): GgufWriter {
    if (!(model instanceof GgufModel)) {
      throw invalidArgType("model", "an open model: of openSync(path), openRemote(url)", model);
    }
    const writer = new GgufWriter(checkOptions(options, FROM_OPTIONS));
    writer.#copy(model);
    return writer;
  }

  #copy(model: GgufModel): void {
    const { metadata, tensors, alignment, paths } = model;
    checkCount(metadata.size, "metadata keys", paths[0]);
    checkCount(tensors.size, "tensors", paths[0]);
    for (const key of metadata.keys()) {
      if (SPLIT_KEYS.includes(key)) continue;
      const [name, place] = [metadata.keyBytes(key) as Uint8Array, valueAt(metadata, key) as ValuePlace];
      this.#entries.set(key, copyEntry(this.#format, name, place));
      this.#copiedKeys.set(key, checkType(metadata.typeOf(key)));
    }
    for (const [name, tensor] of tensors) {
      this.#tensors.set(name, copiedTensor(tensor, model.byteOrder === "big"));
      this.#copiedTensors.add(name);
    }
    this.#alignment = alignment;
    this.#copiedFrom = paths;
  }

  /** The size of the file so far, in bytes. */
  get byteLength(): number {
    return this.#snapshot().byteLength;
  }

  /**
   * Adds a metadata entry, in the order of the calls; or changes one that was copied.
   *
   * @param type what it is declared as. Where it is absent, a key that was copied keeps its type, one of the
   *   specification is declared as that says, and any other as fits the value: whole numbers as uint32 or int32 if they
   *   fit, else as uint64 or int64, and beyond 2^53, where a number may not be what was meant to the last digit (a
   *   bigint is), as float64; other numbers as float32, bigints as uint64 or int64, typed arrays as what they hold.
   *   `GgufMetadata.typeOf` of another file is welcome
   * @throws TypeError for what is no metadata value
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type than the declared one; ERR_GGUF_METADATA_RANGE
   *   for a number that does not fit in it; ERR_GGUF_INVALID for an empty or too long key, one that is set already, or an
   *   alignment that is not a power of two
   */
  set(key: string, value: GgufInput, type?: GgufInputType): this {
    checkKey(key);
    const isCopied = this.#copiedKeys.has(key);
    if (this.#entries.has(key) && !isCopied) throw invalid(`the metadata key '${key}' is set already`);
    const declared = checkType(type) ?? this.#copiedKeys.get(key);
    const alignment = key === ALIGNMENT_KEY ? checkAlignment(value, declared) : this.#alignment;
    this.#entries.set(key, encodeEntry(this.#format, key, value, declared));
    this.#copiedKeys.delete(key);
    this.#alignment = alignment;
    return this;
  }

  /**
   * Takes a metadata entry out.
   * @throws GgufError ERR_GGUF_INVALID where there is none with this key
   */
  removeMetadata(key: string): this {
    checkKey(key);
    if (!this.#entries.delete(key)) {
      throw invalid(`no metadata key is '${key}'${didYouMean(key, this.#entries.keys())}`);
    }
    this.#copiedKeys.delete(key);
    if (key === ALIGNMENT_KEY) this.#alignment = DEFAULT_ALIGNMENT;
    return this;
  }

  /**
   * Adds a tensor, in the order of the calls; or changes one that was copied.
   *
   * @param name up to 63 bytes, which is what ggml reads
   * @param shape one to four dimensions; `shape[0]` is the contiguous one, whole blocks of the type
   * @param data its bytes, or its numbers in a `Float32Array` for the types that {@link quantizeSync} knows; see
   *   {@link TensorData}. What is in memory must stay as it is until the file is written
   * @throws TypeError for an argument of the wrong type
   * @throws GgufError ERR_GGUF_INVALID for a name that is empty, too long or there already, or a shape that cannot be;
   *   ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_RANGE for data of another length than type and shape take
   */
  addTensor(name: string, type: GgmlType, shape: readonly number[], data: TensorData): this {
    const copied = this.#copiedTensors.has(name) ? this.#tensors.get(name) : undefined;
    if (copied === undefined) checkName(name);
    const subject: GgufErrorSubject = { tensor: name };
    if (copied === undefined && this.#tensors.has(name)) {
      throw invalid("there is one of this name already", subject);
    }
    if (typeof type !== "string") throw invalidArgType("type", "of type string", type);
    if (!isGgmlType(type)) {
      throw new GgufError(
        "ERR_GGUF_UNSUPPORTED_TYPE",
        `the tensor type ${type} is not known${meantType(type)}`,
        subject,
      );
    }
    const byteLength = checkShape(shape, type, subject);
    const target: DataTarget = { name, type, byteLength };
    // The name that was copied may be no text.
    const nameInFile = copied?.name ?? name;
    const entry: TensorEntry = { name: nameInFile, type: ggmlTypes[type].id, shape: [...shape], byteLength };
    this.#tensors.set(name, { ...entry, target, data: checkData(data, target) });
    this.#copiedTensors.delete(name);
    return this;
  }

  /**
   * Takes a tensor out.
   * @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND where there is none of this name
   */
  removeTensor(name: string): this {
    this.#expectTensor(name);
    this.#tensors.delete(name);
    this.#copiedTensors.delete(name);
    return this;
  }

  /**
   * Gives tensors other names, all at once, so that two can swap theirs. Each keeps its place.
   *
   * @param names the new names by the present ones: an object, or entries such as those of a `Map`
   * @throws TypeError for an argument of the wrong type
   * @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND where there is none of a present name; ERR_GGUF_INVALID for a new name that is
   *   empty or longer than the 63 bytes that ggml reads, or that two tensors would have
   */
  renameTensors(names: Readonly<Record<string, string>> | Iterable<readonly [string, string]>): this {
    if (typeof names !== "object" || names === null) throw invalidArgType("names", "an object or entries", names);
    const wanted = new Map(Symbol.iterator in names ? names : Object.entries(names));
    for (const [name, to] of wanted) {
      this.#expectTensor(name);
      if (to !== name) checkName(to);
    }
    const renamed = new Map<string, WrittenTensor>();
    for (const [name, tensor] of this.#tensors) {
      const to = wanted.get(name) ?? name;
      if (renamed.has(to)) throw invalid("two tensors would have this name", { tensor: to });
      renamed.set(to, to === name ? tensor : { ...tensor, name: to, target: { ...tensor.target, name: to } });
    }
    const copied = Array.from(this.#copiedTensors, (name) => wanted.get(name) ?? name);
    this.#tensors = renamed;
    this.#copiedTensors = new Set(copied);
    return this;
  }

  #expectTensor(name: string): void {
    if (typeof name !== "string") throw invalidArgType("name", "of type string", name);
    if (this.#tensors.has(name)) return;
    const detail = `no tensor is named '${name}'${didYouMean(name, this.#tensors.keys())}`;
    throw new GgufError("ERR_GGUF_TENSOR_NOT_FOUND", detail);
  }

  /**
   * Writes the file: beside its name at first, and under it once everything is on the disk, so that whoever reads it
   * finds the old file or the new one, never a part. What is set or added meanwhile is not in it.
   *
   * @param path a path, or a `file:` URL; what is there is replaced, unless it is write-protected, or one of several files
   *   of the model of {@link GgufWriter.from}
   * @throws GgufError ERR_GGUF_WRITE where the system refuses (its errno name is in `cause.code`); ERR_GGUF_RANGE where a
   *   tensor's data turn out to have another length than its type and shape take, ERR_GGUF_CHANGED where that happens
   *   while they are written: the old file stays
   * @throws the reason of `options.signal` once that is aborted; what a source of data or `onProgress` throws
   */
  async write(path: string | URL, options?: WriteOptions): Promise<void> {
    const file = checkPath(path);
    const checked = checkWriteOptions(options);
    await writeOutputs([{ path: file, ...this.#snapshot() }], { model: this.#copiedFrom }, checked);
  }

  /** The bytes of the file, piece by piece, for other places than the disk: `Readable.from(writer.chunks())`. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    return this.#snapshot().chunks;
  }

  /** The file as of now, whatever is set and added later. */
  #snapshot(): Pick<Output, "byteLength" | "chunks"> {
    const contents: Contents<WrittenTensor> = {
      format: this.#format,
      alignment: this.#alignment,
      entries: [...this.#entries.values(), ...this.#missingEntries()],
      tensors: [...this.#tensors.values()],
    };
    const layout = layOut(contents);
    const { bigEndian } = this.#format;
    const chunks = fileChunks(contents, layout, ({ data, target }) => {
      const pieces = dataPieces(data, target);
      return bigEndian ? swapped(pieces, target.type) : pieces;
    });
    return { byteLength: layout.byteLength, chunks };
  }

  /** What the specification requires where tensors are quantized. Of those that were copied the version is not known. */
  #missingEntries(): Uint8Array[] {
    const isQuantized = Array.from(this.#tensors.values()).some(
      ({ target }) => ggmlTypes[target.type].blockSize > 1 && !this.#copiedTensors.has(target.name),
    );
    if (!isQuantized || this.#entries.has(QUANTIZATION_VERSION_KEY)) return [];
    return [encodeEntry(this.#format, QUANTIZATION_VERSION_KEY, QUANTIZATION_VERSION, undefined)];
  }
}

/** A tensor as it is in a model; its data is read when it is written. */
function copiedTensor(tensor: GgufModelTensor, isBigEndian: boolean): WrittenTensor {
  const { name, type, shape, byteLength } = tensor;
  const info = checkSupported(type, { path: tensor.path, tensor: name });
  const target: DataTarget = { name, type: type as GgmlType, byteLength };
  const data = async (): Promise<AsyncGenerator<Uint8Array>> => pieces();
  async function* pieces(): AsyncGenerator<Uint8Array> {
    const { blockSize, typeSize, id } = info;
    const count = Math.floor(PIECE_BYTES / typeSize) * blockSize;
    for (let start = 0; start < tensor.elementCount; start += count) {
      const bytes = await tensor.read({ start, end: Math.min(start + count, tensor.elementCount) });
      yield isBigEndian ? native.swapBytes(id, bytes) : bytes;
    }
  }
  return { name: tensor.nameBytes(), type: info.id, shape, byteLength, target, data };
}

/** Data in the other byte order. A piece may end within a block: that one goes with the next piece. */
async function* swapped(
  pieces: AsyncIterable<Uint8Array>,
  type: GgmlType,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { id, typeSize } = ggmlTypes[type];
  let rest: Uint8Array = new Uint8Array();
  for await (const piece of pieces) {
    const bytes = joinBytes([rest, piece]);
    const whole = bytes.length - (bytes.length % typeSize);
    if (whole > 0) yield native.swapBytes(id, bytes.subarray(0, whole));
    rest = bytes.subarray(whole);
  }
}

function checkAlignment(value: unknown, declared: DeclaredType | undefined): number {
  if (declared !== undefined && declared.type !== "uint32") {
    throw invalid(`${ALIGNMENT_KEY} must be a uint32, not ${declared.type}`);
  }
  const alignment = typeof value === "bigint" ? Number(value) : value;
  if (
    typeof alignment !== "number" ||
    !Number.isInteger(alignment) ||
    alignment < 1 ||
    alignment > 2 ** 31 ||
    !Number.isInteger(Math.log2(alignment))
  ) {
    throw invalid(`the alignment must be a power of two, from 1 to 2^31, found ${inspect(value)}`);
  }
  return alignment;
}

function checkName(name: unknown): asserts name is string {
  if (typeof name !== "string") throw invalidArgType("name", "of type string", name);
  checkText("name", name);
  const bytes = Buffer.byteLength(name);
  if (bytes === 0) throw invalid("a tensor's name must not be empty");
  if (bytes > MAX_TENSOR_NAME_BYTES) {
    throw invalid(`its name has ${bytes} bytes, ggml reads up to ${MAX_TENSOR_NAME_BYTES}`, { tensor: name });
  }
}

/** Checks a shape; returns how many bytes a tensor of it takes. */
function checkShape(shape: unknown, type: GgmlType, subject: GgufErrorSubject): number {
  if (!Array.isArray(shape)) throw invalidArgType("shape", "an array of numbers", shape);
  if (shape.length < 1 || shape.length > MAX_DIMS) {
    throw invalid(`it must have one to ${MAX_DIMS} dimensions, found ${shape.length}`, subject);
  }
  for (const [i, dim] of shape.entries()) {
    if (typeof dim !== "number") throw invalidArgType(`shape[${i}]`, "of type number", dim);
    if (!Number.isSafeInteger(dim) || dim < 0) {
      throw invalid(`shape[${i}] must be a whole number, found ${dim}`, subject);
    }
  }
  const { blockSize, typeSize } = ggmlTypes[type];
  if (shape[0] % blockSize !== 0) {
    throw invalid(`shape[0] is ${shape[0]}, not a multiple of the ${blockSize} elements of a ${type} block`, subject);
  }
  // A dimension of 0 counts as 1 here: readers refuse what overflows without it.
  const elements = shape.reduce((product: number, dim: number) => product * Math.max(dim, 1), 1);
  if (elements > Number.MAX_SAFE_INTEGER || elements * (typeSize / blockSize) > Number.MAX_SAFE_INTEGER) {
    throw invalid(`a tensor of shape [${shape.join(", ")}] has more than 2^53 elements or bytes`, subject);
  }
  return shape.includes(0) ? 0 : (elements / blockSize) * typeSize;
}

function invalid(detail: string, subject?: GgufErrorSubject): GgufError {
  return new GgufError("ERR_GGUF_INVALID", detail, subject);
}

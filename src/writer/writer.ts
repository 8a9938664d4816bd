/** Writing GGUF files: {@link GgufWriter}. */
import { inspect } from "node:util";
import { checkOptions } from "../arguments";
import { GgufError, type GgufErrorSubject, invalidArgType } from "../errors";
import { checkPath } from "../file/open";
import { type GgmlType, ggmlTypes, isGgmlType } from "../types";
import { type CheckedData, checkData, type DataTarget, dataPieces, type TensorData } from "./data";
import { CURRENT_FORMAT } from "./header-bytes";
import {
  ALIGNMENT_KEY,
  type Contents,
  DEFAULT_ALIGNMENT,
  fileChunks,
  layOut,
  type TensorEntry,
} from "./layout";
import {
  checkKey,
  checkText,
  checkType,
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
}

interface WrittenTensor extends TensorEntry {
  readonly target: DataTarget;
  readonly data: CheckedData;
}

/** The longest tensor name that ggml reads. */
const MAX_NAME_BYTES = 63;

const MAX_DIMS = 4;

/**
 * Writes a GGUF file (version 3, little-endian): metadata of every type, and tensors from bytes.
 *
 * ```js
 * await new GgufWriter()
 *   .set("general.architecture", "llama")
 *   .set("llama.context_length", 4096)
 *   .addTensor("output_norm.weight", "F32", [4096], new Float32Array(4096))
 *   .write("model.gguf");
 * ```
 *
 * Metadata is kept in bytes from the moment it is set. Tensor data is only referred to: it is read when the file is
 * written, and needs no more memory than one piece of it at a time.
 */
export class GgufWriter {
  readonly #entries = new Map<string, Uint8Array>();
  readonly #tensors = new Map<string, WrittenTensor>();
  #alignment = DEFAULT_ALIGNMENT;

  /** @throws GgufError ERR_GGUF_INVALID for an alignment that is not a power of two */
  constructor(options?: GgufWriterOptions) {
    const { alignment } = checkOptions(options);
    if (alignment === undefined) return;
    if (typeof alignment !== "number") throw invalidArgType("options.alignment", "of type number", alignment);
    this.set(ALIGNMENT_KEY, alignment);
  }

  /** The size of the file so far, in bytes. */
  get byteLength(): number {
    return this.#snapshot().byteLength;
  }

  /**
   * Adds a metadata entry, in the order of the calls.
   *
   * @param type what it is declared as. Where it is absent, a key of the specification is declared as that says, and
   *   any other as fits the value: whole numbers as uint32 or int32 if they fit, else as uint64 or int64, and beyond
   *   2^53, where a number may not be what was meant to the last digit (a bigint is), as float64; other numbers as
   *   float32, bigints as uint64 or int64, typed arrays as what they hold. `GgufMetadata.typeOf` of another file is
   *   welcome
   * @throws TypeError for what is no metadata value
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type than the declared one; ERR_GGUF_METADATA_RANGE
   *   for a number that does not fit in it; ERR_GGUF_INVALID for an empty or too long key, one that is set already, or an
   *   alignment that is not a power of two
   */
  set(key: string, value: GgufInput, type?: GgufInputType): this {
    checkKey(key);
    if (this.#entries.has(key)) throw invalid(`the metadata key '${key}' is set already`);
    const declared = checkType(type);
    const alignment = key === ALIGNMENT_KEY ? checkAlignment(value, declared) : this.#alignment;
    this.#entries.set(key, encodeEntry(CURRENT_FORMAT, key, value, declared));
    this.#alignment = alignment;
    return this;
  }

  /**
   * Adds a tensor, in the order of the calls.
   *
   * @param name up to 63 bytes, which is what ggml reads
   * @param shape one to four dimensions; `shape[0]` is the contiguous one, whole blocks of the type
   * @param data its bytes; see {@link TensorData}. What is in memory must stay as it is until the file is written
   * @throws TypeError for an argument of the wrong type
   * @throws GgufError ERR_GGUF_INVALID for a name that is empty, too long or there already, or a shape that cannot be;
   *   ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_RANGE for data of another length than type and shape take
   */
  addTensor(name: string, type: GgmlType, shape: readonly number[], data: TensorData): this {
    checkName(name);
    const subject: GgufErrorSubject = { tensor: name };
    if (this.#tensors.has(name)) throw invalid("there is one of this name already", subject);
    if (typeof type !== "string") throw invalidArgType("type", "of type string", type);
    if (!isGgmlType(type)) {
      throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", `the tensor type ${type} is not known`, subject);
    }
    const byteLength = checkShape(shape, type, subject);
    const target: DataTarget = { name, type, byteLength };
    const entry: TensorEntry = { name, type: ggmlTypes[type].id, shape: [...shape], byteLength };
    this.#tensors.set(name, { ...entry, target, data: checkData(data, target) });
    return this;
  }

  /**
   * Writes the file: beside its name at first, and under it once everything is on the disk, so that whoever reads it
   * finds the old file or the new one, never a part. What is set or added meanwhile is not in it.
   *
   * @param path a path, or a `file:` URL; what is there is replaced, unless it is write-protected
   * @throws GgufError ERR_GGUF_WRITE where the system refuses (its errno name is in `cause.code`); ERR_GGUF_RANGE where a
   *   tensor's data turn out to have another length than its type and shape take, ERR_GGUF_CHANGED where that happens
   *   while they are written: the old file stays
   * @throws the reason of `options.signal` once that is aborted; what a source of data or `onProgress` throws
   */
  async write(path: string | URL, options?: WriteOptions): Promise<void> {
    const file = checkPath(path);
    const checked = checkWriteOptions(options);
    await writeOutputs([{ path: file, ...this.#snapshot() }], checked);
  }

  /** The bytes of the file, piece by piece, for other places than the disk: `Readable.from(writer.chunks())`. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    return this.#snapshot().chunks;
  }

  /** The file as of now, whatever is set and added later. */
  #snapshot(): Pick<Output, "byteLength" | "chunks"> {
    const contents: Contents<WrittenTensor> = {
      format: CURRENT_FORMAT,
      alignment: this.#alignment,
      entries: [...this.#entries.values()],
      tensors: [...this.#tensors.values()],
    };
    const layout = layOut(contents);
    const chunks = fileChunks(contents, layout, ({ data, target }) => dataPieces(data, target));
    return { byteLength: layout.byteLength, chunks };
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
  if (bytes > MAX_NAME_BYTES) {
    throw invalid(`its name has ${bytes} bytes, ggml reads up to ${MAX_NAME_BYTES}`, { tensor: name });
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
    throw invalid(
      `shape[0] is ${shape[0]}, not a multiple of the ${blockSize} elements of a ${type} block`,
      subject,
    );
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

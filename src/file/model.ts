// For users without this TypeScript library and without @types/node, which includes it.
/// <reference lib="esnext.disposable" preserve="true" />
/** An open model, in one or several files, on this machine or on a server. */
import { GgufError, invalidArgType } from "../base/errors";
import { type Inspect, inspectCustom } from "../base/inspect";
import { didYouMean } from "../base/suggest";
import { checkOpenFile, closeFile, handleOf, type OpenFile } from "./handle";
import { GgufMetadata } from "./metadata";
import type { GgufModelTensor } from "./model-tensor";
import { TensorMap, type TensorPlace } from "./tensor-map";

// Node before 20.5 lacks the symbol. Polyfills look it up under this name.
const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("nodejs.dispose") as typeof Symbol.dispose);

/** The files of a model, which only the package may know. */
export let filesOf: (model: GgufModel) => readonly OpenFile[];

/**
 * An open model: the base class of `GgufFile` and `RemoteGgufFile`, so that one function can read both. Its
 * metadata is available synchronously; the data of its tensors, of type `T`, is read asynchronously. The
 * metadata, version, byte order and alignment of a split model are those of its first file; its tensors are
 * those of all files.
 */
export abstract class GgufModel<T extends GgufModelTensor = GgufModelTensor> implements Disposable {
  /** In the order of the shards; one file if the model is not split. */
  readonly #files: readonly OpenFile[];
  readonly #metadata: GgufMetadata;
  readonly #tensors: TensorMap<T>;

  static {
    filesOf = (model) => model.#files;
  }

  /** @internal */
  protected constructor(files: readonly [OpenFile, ...OpenFile[]], create: (place: TensorPlace) => T) {
    checkOpenFile(files?.[0], "use open, openSync, parse or openRemote");
    this.#files = files;
    this.#metadata = GgufMetadata.of(files[0]);
    this.#tensors = new TensorMap(files, create);
  }

  /** The format of the file. A model of another format has the same interface as a GGUF file of version 3. */
  get format(): "gguf" | "safetensors" {
    return "gguf";
  }

  /** The version of the format: 1, 2 or 3. */
  get version(): number {
    return this.#first.info.version;
  }

  /** The byte order of every number in the file, including tensor data. */
  get byteOrder(): "little" | "big" {
    return this.#first.info.bigEndian ? "big" : "little";
  }

  /** The size of the file in bytes; the total size of all files of a split model. */
  get byteLength(): number {
    return this.#files.reduce((sum, { info }) => sum + info.byteLength, 0);
  }

  /** The alignment of tensor offsets, in bytes: `general.alignment`, or 32 without that key. */
  get alignment(): number {
    return this.#first.info.alignment;
  }

  /** The files of the model: one, or the shards of a split model in their order; none for bytes in memory. */
  get paths(): readonly string[] {
    return this.#files.flatMap(({ path }) => path ?? []);
  }

  /** The keys and values of the header, which describe the model. */
  get metadata(): GgufMetadata {
    return this.#metadata;
  }

  /**
   * The tensors by name, in file order. The map is read-only, also at run time: it is not a `Map`. Names and tensors
   * are read when you ask for them, so after the model is closed, the map has only its size, and throws ERR_GGUF_CLOSED
   * for everything else. In a model of more than 65,536 tensors, asking again for a tensor may give another object.
   * @throws GgufError ERR_GGUF_CLOSED
   */
  get tensors(): ReadonlyMap<string, T> {
    handleOf(this.#first);
    return this.#tensors;
  }

  /**
   * The tensor with this name.
   * @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND, ERR_GGUF_CLOSED
   */
  tensor(name: string): T {
    if (typeof name !== "string") throw invalidArgType("name", "of type string", name);
    const tensor = this.tensors.get(name);
    if (tensor !== undefined) return tensor;
    const { path } = this.#first;
    const detail = `no tensor is named '${name}'${didYouMean(name, this.tensors.keys())}`;
    throw new GgufError("ERR_GGUF_TENSOR_NOT_FOUND", detail, { path });
  }

  /** Whether {@link close} was called. */
  get closed(): boolean {
    return this.#first.closed;
  }

  /** Closes the model. May be called more than once, and also while views exist or work is running. */
  close(): void {
    for (const file of this.#files) closeFile(file);
  }

  /** {@link close}, for `using`. */
  [dispose](): void {
    this.close();
  }

  /**
   * A summary for `JSON.stringify`, with the names that `gguf-native inspect --json` has: the properties of the model,
   * how many tensors and numbers it has, and its metadata as `GgufMetadata.toJSON` gives it. A closed model has only
   * its properties.
   */
  toJSON(): Record<string, unknown> {
    const { paths, version, byteOrder, byteLength, alignment, closed } = this;
    const facts = { paths, version, byteOrder, byteLength, alignment };
    if (closed) return { ...facts, closed };
    let parameterCount = 0;
    for (const { elementCount } of this.tensors.values()) parameterCount += elementCount;
    return { ...facts, tensorCount: this.tensors.size, parameterCount, metadata: this.metadata.toJSON() };
  }

  /** @internal */
  [inspectCustom](depth: number, options: object, inspect: Inspect): string {
    const { name } = this.constructor;
    if (depth < 0) return `[${name}]`;
    const { version, byteOrder, byteLength, alignment, closed } = this;
    const tensors = closed ? undefined : this.tensors.size;
    const { path } = this.#first;
    const shards = this.#files.length > 1 ? { shards: this.#files.length } : {};
    const shown = { path, ...shards, version, byteOrder, byteLength, alignment, closed, tensors };
    return `${name} ${inspect(shown, options)}`;
  }

  get #first(): OpenFile {
    return this.#files[0] as OpenFile;
  }
}

/** Opening GGUF files: {@link openSync}, {@link open}, {@link parse} and {@link GgufFile}. */
import { fileURLToPath } from "node:url";
import { inspect, types } from "node:util";
import { GgufError, invalidArgType, invalidArgValue } from "./errors";
import { handleOf, illegalConstructor, type OpenFile, PRIVATE } from "./handle";
import { createMetadata, type GgufMetadata } from "./metadata";
import { type NativeFile, type NativeFileInfo, native } from "./native";
import { checkBoolean, checkOptions, checkSignal } from "./options";
import { createTensors, type GgufTensor } from "./tensor";

/** Options of {@link parse}. */
export interface ParseOptions {
  /**
   * Accept a file whose tensor data is missing or cut off: tensors are listed, asking for absent data throws
   * ERR_GGUF_TRUNCATED. Default false.
   */
  partial?: boolean | undefined;
}

/** Options of {@link open} and {@link openSync}. */
export interface OpenOptions extends ParseOptions {
  /** `"mmap"` (default) maps the file; `"read"` uses ordinary reads, for network and FUSE file systems. */
  access?: "mmap" | "read" | undefined;
  /** Open every file of a split model as one. Default true. */
  splits?: boolean | undefined;
}

// Node before 20.5 lacks the symbol; what polyfills it there looks it up under this name.
const dispose: typeof Symbol.dispose =
  Symbol.dispose ?? (Symbol.for("nodejs.dispose") as typeof Symbol.dispose);

let createFile: (handle: NativeFile, path: string | undefined) => GgufFile;

/**
 * An open GGUF file: its metadata and its tensors. `close()` it when done, or declare it with `using`; a file that
 * is no longer referenced, nor any of its tensors or views, is closed by the garbage collector.
 *
 * Metadata, tensors and views share the mapping of the file. After `close()` asking them for data throws
 * `ERR_GGUF_CLOSED`, views have length 0, and asynchronous work that has begun still completes.
 */
export class GgufFile implements Disposable {
  readonly #file: OpenFile;
  readonly #info: NativeFileInfo;
  readonly #metadata: GgufMetadata;
  #tensors: Map<string, GgufTensor> | undefined;

  static {
    createFile = (handle, path) => new GgufFile(PRIVATE, handle, path);
  }

  private constructor(key: typeof PRIVATE, handle: NativeFile, path: string | undefined) {
    if (key !== PRIVATE) throw illegalConstructor("use open, openSync or parse");
    this.#file = { handle, path, closed: false };
    this.#info = native.info(handle);
    this.#metadata = createMetadata(this.#file);
  }

  /** The version of the format: 1, 2 or 3. */
  get version(): number {
    return this.#info.version;
  }

  get byteOrder(): "little" | "big" {
    return this.#info.bigEndian ? "big" : "little";
  }

  /** The size of the file in bytes. */
  get byteLength(): number {
    return this.#info.byteLength;
  }

  /** What tensor offsets are multiples of, in bytes: `general.alignment`, else 32. */
  get alignment(): number {
    return this.#info.alignment;
  }

  get metadata(): GgufMetadata {
    return this.#metadata;
  }

  /**
   * The tensors by name, in file order.
   * @throws GgufError ERR_GGUF_CLOSED
   */
  get tensors(): ReadonlyMap<string, GgufTensor> {
    handleOf(this.#file);
    this.#tensors ??= createTensors(this.#file);
    return this.#tensors;
  }

  /**
   * The tensor with this name.
   * @throws GgufError ERR_GGUF_TENSOR_NOT_FOUND, ERR_GGUF_CLOSED
   */
  tensor(name: string): GgufTensor {
    if (typeof name !== "string") throw invalidArgType("name", "of type string", name);
    const tensor = this.tensors.get(name);
    if (tensor !== undefined) return tensor;
    throw new GgufError("ERR_GGUF_TENSOR_NOT_FOUND", `no tensor is named '${name}'`, {
      path: this.#file.path,
    });
  }

  /** Whether {@link close} was called. */
  get closed(): boolean {
    return this.#file.closed;
  }

  /** Closes the file; more than once is fine, as are outstanding views and running work. */
  close(): void {
    if (this.#file.closed) return;
    this.#file.closed = true;
    native.close(this.#file.handle);
  }

  /** {@link close}, for `using`. */
  [dispose](): void {
    this.close();
  }

  /** @internal */
  [inspect.custom](depth: number, options: object, inspectValue: typeof inspect): string {
    if (depth < 0) return `[${GgufFile.name}]`;
    const { path, closed } = this.#file;
    const { version, byteOrder, byteLength, alignment } = this;
    const tensors = closed ? undefined : this.tensors.size;
    const shown = { path, version, byteOrder, byteLength, alignment, closed, tensors };
    return `${GgufFile.name} ${inspectValue(shown, options)}`;
  }
}

/**
 * Opens a GGUF file and reads its header; tensor data is not touched.
 *
 * @param path a path, or a `file:` URL
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_OPEN where the system refuses (its errno name is in `cause.code`); ERR_GGUF_MAGIC,
 *   ERR_GGUF_VERSION, ERR_GGUF_TRUNCATED or ERR_GGUF_INVALID for a file that is not a sound GGUF, with the byte where
 *   the trouble is in `offset`
 */
export function openSync(path: string | URL, options?: OpenOptions): GgufFile {
  const name = checkPath(path);
  const { read, partial } = checkOpenOptions(options);
  return createFile(native.open(name, read, partial), name);
}

/**
 * As {@link openSync}, off the main thread. Wrong arguments reject the promise.
 *
 * @throws the reason of `options.signal` once that is aborted
 */
export async function open(
  path: string | URL,
  options?: OpenOptions & { signal?: AbortSignal | undefined },
): Promise<GgufFile> {
  const name = checkPath(path);
  const { read, partial } = checkOpenOptions(options);
  const signal = checkSignal(options?.signal);
  signal?.throwIfAborted();
  const opening = native.openAsync(name, read, partial);
  if (signal === undefined) return createFile(await opening, name);

  // The system call goes on after an abort: what it opens then is closed at once.
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason);
      opening.then(
        (handle) => native.close(handle),
        () => undefined,
      );
    };
    signal.addEventListener("abort", abort, { once: true });
    opening
      .finally(() => signal.removeEventListener("abort", abort))
      .then((handle) => {
        if (!signal.aborted) resolve(createFile(handle, name));
      })
      .catch(reject);
  });
}

/**
 * Reads a GGUF that is already in memory. The bytes are not copied: keep them as they are while the file is in use.
 *
 * @throws TypeError ERR_INVALID_ARG_TYPE; GgufError as {@link openSync}
 */
export function parse(bytes: Uint8Array | ArrayBuffer, options?: ParseOptions): GgufFile {
  const view = types.isAnyArrayBuffer(bytes) ? new Uint8Array(bytes) : bytes;
  if (!types.isUint8Array(view))
    throw invalidArgType("bytes", "an instance of Uint8Array or ArrayBuffer", bytes);
  const partial = checkBoolean("options.partial", checkOptions(options).partial, false);
  return createFile(native.parse(view, partial), undefined);
}

function checkPath(path: unknown): string {
  const isUrl = path instanceof URL || (typeof path === "object" && path !== null && "href" in path);
  const name = isUrl ? fileURLToPath(path as URL) : path;
  if (typeof name !== "string") throw invalidArgType("path", "of type string or an instance of URL", path);
  if (name.includes("\0")) throw invalidArgValue("path", "must be a string or URL without null bytes", path);
  return name;
}

function checkOpenOptions(options: OpenOptions | undefined): { read: boolean; partial: boolean } {
  const { access, splits, partial } = checkOptions(options);
  if (access !== undefined && access !== "mmap" && access !== "read") {
    if (typeof access !== "string") throw invalidArgType("options.access", "of type string", access);
    throw invalidArgValue("options.access", "must be one of: 'mmap', 'read'", access);
  }
  checkBoolean("options.splits", splits, true);
  return { read: access === "read", partial: checkBoolean("options.partial", partial, false) };
}

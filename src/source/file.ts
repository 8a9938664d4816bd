/** Files that are copied from: their headers as raw bytes, and their data in pieces. */
import { type FileHandle, open } from "node:fs/promises";
import { GgufError } from "../errors";
import { closeFile, handleOf, indexNames, type OpenFile, openedFile } from "../file/handle";
import { open as openModel } from "../file/open";
import { native } from "../native";
import { type HeaderFormat, lengthBytes } from "../writer/header-bytes";
import { frontBytes, PIECE_BYTES, type TensorEntry } from "../writer/layout";

/** A stretch of a file. */
export interface Stretch {
  readonly source: Source;
  readonly offset: number;
  readonly byteLength: number;
}

/** A tensor of a file that is copied. */
export interface SourceTensor extends TensorEntry, Stretch {}

/** A file that stays open while it is copied, so that even one that is replaced meanwhile is copied as it was. */
export class Source {
  readonly #handle: FileHandle;
  /** For its metadata: the header only, nothing is mapped. */
  readonly file: OpenFile;
  readonly path: string;
  readonly byteLength: number;
  readonly format: HeaderFormat;
  readonly alignment: number;
  /** Where tensor data starts: at the end of the file, where there is none. */
  readonly dataOffset: number;

  private constructor(handle: FileHandle, file: OpenFile, path: string) {
    const { version, bigEndian, alignment, dataOffset, byteLength } = file.info;
    this.#handle = handle;
    this.file = file;
    this.path = path;
    this.byteLength = byteLength;
    this.format = { version, bigEndian };
    this.alignment = alignment;
    this.dataOffset = Math.min(dataOffset, byteLength);
  }

  static async open(path: string, flags: "r" | "r+" = "r"): Promise<Source> {
    // First, so that what cannot be opened, or is no sound file, is reported in the usual way.
    const file = openedFile(await native.openAsync(path, true, false), path);
    let handle: FileHandle | undefined;
    try {
      handle = await open(path, flags);
      if ((await handle.stat()).size !== file.info.byteLength) throw changed(path);
      return new Source(handle, file, path);
    } catch (error) {
      closeFile(file);
      await handle?.close();
      if (error instanceof GgufError) throw error;
      const code = flags === "r" ? "ERR_GGUF_OPEN" : "ERR_GGUF_WRITE";
      throw new GgufError(code, (error as Error).message, { path, cause: error });
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    closeFile(this.file);
    await this.#handle.close();
  }

  /** The bytes from `begin` to `end`. */
  async read(begin: number, end: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(end - begin);
    for (let done = 0; done < bytes.length; ) {
      const { bytesRead } = await this.#handle.read(bytes, done, bytes.length - done, begin + done);
      if (bytesRead === 0) throw changed(this.path);
      done += bytesRead;
    }
    return bytes;
  }

  /** The same in pieces. */
  async *pieces(begin: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let at = begin; at < end; at += PIECE_BYTES) yield this.read(at, Math.min(at + PIECE_BYTES, end));
  }

  async write(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      done += (await this.#handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
    }
    await this.#handle.sync();
  }

  get tensorCount(): number {
    return native.tensors(handleOf(this.file)).names.length;
  }

  /** The metadata entries by name, each as it stands in the file: key, type and value. */
  async entries(): Promise<Map<string, Uint8Array>> {
    const { names, ends } = native.keys(handleOf(this.file));
    const entries = new Map<string, Uint8Array>();
    let begin = frontBytes(this.format);
    const bytes = await this.read(0, ends.at(-1) ?? begin);
    for (const [name, i] of indexNames(names)) {
      entries.set(name, bytes.subarray(begin, ends[i]));
      begin = ends[i] as number;
    }
    return entries;
  }

  /** The tensor directory as it stands in the file. Its offsets count from the start of the data. */
  async directory(): Promise<Uint8Array> {
    const { ends } = native.keys(handleOf(this.file));
    const begin = ends.at(-1) ?? frontBytes(this.format);
    const bytes = await this.read(begin, this.dataOffset);
    const end = this.#walk(bytes).reduce((_end, each) => each.end, 0);
    return bytes.subarray(0, end);
  }

  /**
   * The tensors, in file order.
   * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for a tensor of an unknown type: how long its data are is not known
   */
  async tensors(): Promise<SourceTensor[]> {
    const { names, byteLengths, offsets, types, shapes, dimCounts } = native.tensors(handleOf(this.file));
    const raw = this.#walk(await this.directory());
    return raw.map(({ name }, i) => {
      const byteLength = byteLengths[i] as number;
      if (Number.isNaN(byteLength)) {
        const detail = `its type, number ${types[i]}, is not known, so neither is the length of its data`;
        throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: this.path, tensor: names[i] });
      }
      return {
        ...{ source: this, name, type: types[i] as number, byteLength, offset: offsets[i] as number },
        shape: [...shapes.subarray(i * 4, i * 4 + (dimCounts[i] as number))],
      };
    });
  }

  /** Where the names of a directory are, and where its entries end. The header was checked when it was opened. */
  #walk(directory: Uint8Array): { name: Uint8Array; end: number }[] {
    const { buffer, byteOffset, byteLength } = directory;
    const view = new DataView(buffer, byteOffset, byteLength);
    const width = lengthBytes(this.format);
    const little = !this.format.bigEndian;
    const { dimCounts } = native.tensors(handleOf(this.file));
    let at = 0;
    return Array.from(dimCounts, (dims) => {
      const length = width === 4 ? view.getUint32(at, little) : Number(view.getBigUint64(at, little));
      const begin = at + width;
      // The name, then how many dimensions, these, the type and the offset.
      at = begin + length + 4 + dims * width + 4 + 8;
      if (!(at <= byteLength)) throw changed(this.path);
      return { name: directory.subarray(begin, begin + length), end: at };
    });
  }
}

/** Opens all files of a model; `path` is any of them. */
export async function openSources(path: string): Promise<Source[]> {
  // Opened as one for a moment, which checks that the files belong together.
  const model = await openModel(path, { access: "read" });
  const { paths } = model;
  model.close();
  const sources: Source[] = [];
  try {
    for (const each of paths) sources.push(await Source.open(each));
    return sources;
  } catch (error) {
    await closeSources(sources);
    throw error;
  }
}

export async function closeSources(sources: readonly Source[]): Promise<void> {
  for (const source of sources) await source.close();
}

function changed(path: string): GgufError {
  return new GgufError("ERR_GGUF_CHANGED", "the file changed while it was being read", { path });
}

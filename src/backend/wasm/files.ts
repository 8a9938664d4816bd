/** Open files: their headers, and the bytes in them. Nothing of them is in the module. */
import { errorAbout, GgufError, invalidArgType } from "../../base/errors";
import type { OwnBytes } from "../../base/options";
import type { NativeAddon, NativeFile } from "../native-surface";
import { type FileBytes, MemoryBytes } from "./bytes-of-file";
import { type ParsedHeader, parseHeader } from "./header";

/** Opens a file by its path. */
export type OpenBytes = (path: string) => { bytes: FileBytes; header: (partial: boolean) => ParsedHeader };

/** Closes files that were forgotten. */
const forgotten = new FinalizationRegistry<FileBytes>((bytes) => bytes.release());

/** An open file. */
export class WasmFile {
  readonly bytes: FileBytes;
  #header: ParsedHeader | undefined;

  constructor(bytes: FileBytes, header: ParsedHeader) {
    this.bytes = bytes;
    this.#header = header;
    forgotten.register(this, bytes, this);
  }

  static of(file: unknown): WasmFile {
    if (file instanceof WasmFile) return file;
    throw invalidArgType("file", "an open GGUF file", file);
  }

  get header(): ParsedHeader {
    if (this.#header !== undefined) return this.#header;
    throw new GgufError("ERR_GGUF_CLOSED", "the file is closed", { path: this.bytes.path });
  }

  close(): void {
    if (this.#header === undefined) return;
    this.#header = undefined;
    forgotten.unregister(this);
    this.bytes.release();
  }
}

/** Runs `work`; errors get the path of the file that they are about. */
export function about<T>(path: string | undefined, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw path !== undefined && error instanceof GgufError ? errorAbout(error, { path }) : error;
  }
}

function asNative(file: WasmFile): NativeFile {
  return file as unknown as NativeFile;
}

/** The bytes of a metadata value in its file. */
function valueBytes({ bytes, header }: WasmFile, index: number, first = 0, byteLength?: number): Uint8Array {
  const value = header.valuePlace(index);
  const begin = value.begin + first;
  const count = byteLength ?? value.end - begin;
  bytes.check(BigInt(begin), BigInt(count));
  return bytes.take(begin, count);
}

/** What the addon does with files; `openBytes` opens them. */
export function fileFunctions(
  openBytes: OpenBytes,
): Pick<
  NativeAddon,
  | "open"
  | "openAsync"
  | "parse"
  | "close"
  | "info"
  | "keys"
  | "findKey"
  | "replacedKeys"
  | "value"
  | "valueBytes"
  | "readValue"
  | "keyBytes"
  | "tensors"
  | "findTensor"
  | "replacedTensors"
  | "tensorNameBytes"
  | "bytes"
  | "readBytes"
> {
  const open = (path: string, partial: boolean): NativeFile =>
    about(path, () => {
      const { bytes, header } = openBytes(path);
      try {
        return asNative(new WasmFile(bytes, header(partial)));
      } catch (error) {
        bytes.release();
        throw error;
      }
    });

  return {
    open: (path, _read, partial) => open(path, partial),
    openAsync: async (path, _read, partial) => open(path, partial),
    parse: ((bytes: Uint8Array, partial: boolean, fileSize?: number) => {
      const header = parseHeader(bytes, partial, fileSize);
      return header && asNative(new WasmFile(new MemoryBytes(bytes), header));
    }) as NativeAddon["parse"],
    close: (file) => WasmFile.of(file).close(),

    info: (file) => WasmFile.of(file).header.info(),
    keys: (file, first, count) => WasmFile.of(file).header.keys(first, count),
    findKey: (file, name) => WasmFile.of(file).header.findKey(name),
    replacedKeys: (file) => WasmFile.of(file).header.replacedKeys(),
    value: (file, index) => {
      const opened = WasmFile.of(file);
      return about(opened.bytes.path, () => opened.header.value(index, valueBytes(opened, index)));
    },
    valueBytes: (file, index) => {
      const opened = WasmFile.of(file);
      return about(opened.bytes.path, () => opened.header.valueBytes(index, valueBytes(opened, index)));
    },
    readValue: (file, index, first, out) => {
      const opened = WasmFile.of(file);
      about(opened.bytes.path, () => out.set(valueBytes(opened, index, first, out.length)));
    },
    keyBytes: (file, index) => WasmFile.of(file).header.keyBytes(index),
    tensors: (file, first, count) => WasmFile.of(file).header.tensors(first, count),
    findTensor: (file, name) => WasmFile.of(file).header.findTensor(name),
    replacedTensors: (file) => WasmFile.of(file).header.replacedTensors(),
    tensorNameBytes: (file, index) => WasmFile.of(file).header.tensorNameBytes(index),

    bytes: (file, index) => {
      const { bytes, header } = WasmFile.of(file);
      const { offset, byteLength } = header.extent(index);
      const begin = byteLength === 0n ? 0n : offset; // an empty tensor may lie past the end of the file
      return about(bytes.path, () => {
        bytes.check(begin, byteLength);
        return bytes.take(Number(begin), Number(byteLength)) as OwnBytes;
      });
    },
    readBytes: (file, index, first, out) => {
      const { bytes, header } = WasmFile.of(file);
      if (out.length === 0) return;
      const begin = header.extent(index).offset + BigInt(first);
      about(bytes.path, () => {
        bytes.check(begin, BigInt(out.length));
        out.set(bytes.take(Number(begin), out.length));
      });
    },
  } satisfies Partial<NativeAddon>;
}

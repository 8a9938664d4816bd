/** A header as raw bytes. What is not changed is copied without being decoded, so that text that is not UTF-8 survives. */

import { native } from "../backend/native";
import { GgufError } from "../base/errors";
import { handleOf, type OpenFile } from "../file/handle";
import { KEYS, NameList, TENSORS } from "../file/listing";
import { type HeaderFormat, lengthBytes } from "../layout/header-bytes";
import { checkCount, preambleBytes, type TensorEntry } from "../layout/layout";

/** What the header says of a tensor, and where its data is in the file. */
export interface RawTensor extends TensorEntry {
  /** From the start of the file. */
  readonly offset: number;
}

/** Where in the header the name of a tensor is, and where its entry ends. */
interface TensorPlace {
  readonly nameBegin: number;
  readonly nameEnd: number;
  readonly end: number;
}

export class RawHeader {
  readonly format: HeaderFormat;
  readonly #file: OpenFile;
  readonly #bytes: Uint8Array;
  #byteLength: number | undefined;

  /** @param bytes what `file` was parsed from: all that comes before the tensor data */
  constructor(file: OpenFile, bytes: Uint8Array) {
    const { version, bigEndian } = file.info;
    this.format = { version, bigEndian };
    this.#file = file;
    this.#bytes = bytes;
  }

  get tensorCount(): number {
    return this.#file.info.tensorCount;
  }

  /** Bytes of the file up to the end of the tensor directory. */
  get byteLength(): number {
    if (this.#byteLength === undefined) {
      this.#byteLength = this.#directoryBegin();
      for (const { end } of this.#tensorPlaces()) this.#byteLength = end;
    }
    return this.#byteLength;
  }

  /** Whether `bytes` are this header. */
  equals(bytes: Uint8Array): boolean {
    return Buffer.compare(bytes, this.#bytes.subarray(0, this.byteLength)) === 0;
  }

  /**
   * The metadata entries by name: key, type and value of each.
   * @throws GgufError ERR_GGUF_RANGE where there are too many of them
   */
  entries(): Map<string, Uint8Array> {
    checkCount(this.#file.info.keyCount, "metadata keys", this.#file.path);
    const entries = new Map<string, Uint8Array>();
    let begin = preambleBytes(this.format);
    for (const { names, columns } of new NameList([this.#file], KEYS).pages()) {
      for (const [i, name] of names.entries()) {
        entries.set(name, this.#bytes.subarray(begin, columns.ends[i]));
        begin = columns.ends[i] as number;
      }
    }
    return entries;
  }

  /** The tensor directory. Its offsets count from the start of the tensor data. */
  directory(): Uint8Array {
    return this.#bytes.subarray(this.#directoryBegin(), this.byteLength);
  }

  /**
   * The tensors, in file order.
   * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for a tensor of an unknown type, whose data has an unknown length;
   *   ERR_GGUF_RANGE where there are too many of them
   */
  tensors(): RawTensor[] {
    checkCount(this.tensorCount, "tensors", this.#file.path);
    const places = this.#tensorPlaces();
    const tensors: RawTensor[] = [];
    for (const { names, columns } of new NameList([this.#file], TENSORS).pages()) {
      const { byteLengths, offsets, types, shapes, dimCounts } = columns;
      for (const [i, tensor] of names.entries()) {
        const byteLength = byteLengths[i] as number;
        if (Number.isNaN(byteLength)) {
          const detail = `its type, number ${types[i]}, is not known, so neither is the length of its data`;
          throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: this.#file.path, tensor });
        }
        const { nameBegin, nameEnd } = places.next().value as TensorPlace;
        tensors.push({
          name: this.#bytes.subarray(nameBegin, nameEnd),
          type: types[i] as number,
          shape: [...shapes.subarray(i * 4, i * 4 + (dimCounts[i] as number))],
          byteLength,
          offset: offsets[i] as number,
        });
      }
    }
    return tensors;
  }

  #directoryBegin(): number {
    const { keyCount } = this.#file.info;
    if (keyCount === 0) return preambleBytes(this.format);
    return native.keys(handleOf(this.#file), keyCount - 1, 1).ends[0] as number;
  }

  /** In file order. The header was checked when it was parsed. */
  *#tensorPlaces(): Generator<TensorPlace, void, undefined> {
    const { buffer, byteOffset, byteLength } = this.#bytes;
    const view = new DataView(buffer, byteOffset, byteLength);
    const width = lengthBytes(this.format);
    const little = !this.format.bigEndian;
    let at = this.#directoryBegin();
    for (let i = 0; i < this.tensorCount; i++) {
      const length = width === 4 ? view.getUint32(at, little) : Number(view.getBigUint64(at, little));
      const nameBegin = at + width;
      const nameEnd = nameBegin + length;
      // After the name: how many dimensions there are, these, the type and the offset.
      at = nameEnd + 4 + view.getUint32(nameEnd, little) * width + 4 + 8;
      yield { nameBegin, nameEnd, end: at };
    }
  }
}

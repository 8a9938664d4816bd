/** Tensors that lie elsewhere, as if they were in a GGUF file: so they are read, decoded and written as those of one. */
import { type NativeFile, native } from "../backend/native";
import { GgufError } from "../base/errors";
import { type GgmlType, ggmlTypes } from "../base/types";
import { alignUp, CURRENT_FORMAT } from "../layout/header-bytes";
import { DEFAULT_ALIGNMENT, layOut } from "../layout/layout";
import type { Arrived, Source } from "../source/source";

/** A tensor, and how its bytes are made. */
export interface VirtualTensor {
  readonly name: string;
  readonly type: GgmlType;
  /** The contiguous dimension first. */
  readonly shape: readonly number[];
  /**
   * Fills `target` with its bytes from `begin` on, which are whole numbers.
   * @param arrived told how many bytes of `target` have arrived
   */
  read(begin: number, target: Uint8Array, signal?: AbortSignal, arrived?: Arrived): Promise<void>;
}

/** A file that has a header, of which the handle is the parsed form, and tensors, but is nowhere. */
export class VirtualSource implements Source {
  readonly path: string;
  readonly byteLength: number;
  readonly handle: NativeFile;
  readonly #source: Pick<Source, "check" | "close">;
  readonly #tensors: readonly VirtualTensor[];
  readonly #begins: readonly number[];
  #closed = false;

  /**
   * @param entries the metadata: keys, types and values as they are in a header
   * @param source what the tensors are read from
   * @param entryCount how many entries there are, where several are in one array
   */
  constructor(
    path: string,
    entries: readonly Uint8Array[],
    tensors: readonly VirtualTensor[],
    source: Pick<Source, "check" | "close">,
    entryCount = entries.length,
  ) {
    this.path = path;
    this.#source = source;
    this.#tensors = tensors;
    const sized = tensors.map(({ name, type, shape }) => {
      const { id, blockSize, typeSize } = ggmlTypes[type];
      const elements = shape.reduce((product, dim) => product * dim, 1);
      return { name, type: id, shape, byteLength: (elements / blockSize) * typeSize };
    });
    const contents = {
      format: CURRENT_FORMAT,
      alignment: DEFAULT_ALIGNMENT,
      entries,
      entryCount,
      tensors: sized,
    };
    const { header, dataOffset, byteLength } = layOut(contents);
    const bytes = new Uint8Array(dataOffset);
    bytes.set(header);
    this.byteLength = byteLength;
    this.handle = native.parse(bytes, false, byteLength) as NativeFile;
    const begins: number[] = [];
    let begin = dataOffset;
    for (const { byteLength } of sized) {
      begins.push(begin);
      begin += alignUp(byteLength, DEFAULT_ALIGNMENT);
    }
    this.#begins = begins;
  }

  /** Reads bytes of one tensor. */
  async read(begin: number, target: Uint8Array, signal?: AbortSignal, arrived?: Arrived): Promise<number> {
    if (this.#closed) throw new GgufError("ERR_GGUF_CLOSED", "the file was closed", { path: this.path });
    if (target.length === 0) return 0;
    // The last one that begins there or before: empty ones have no bytes to be read.
    let [low, high] = [0, this.#begins.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#begins[middle] as number) <= begin) low = middle;
      else high = middle - 1;
    }
    const tensor = this.#tensors[low] as VirtualTensor;
    await tensor.read(begin - (this.#begins[low] as number), target, signal, arrived);
    return target.length;
  }

  check(): Promise<void> {
    return this.#source.check();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#source.close();
  }
}

/** A safetensors model and its tensors. */
import { errorAbout, GgufError } from "../base/errors";
import { TYPE_NAMES } from "../base/metadata-values";
import { ggmlTypes } from "../base/types";
import { OpenFile } from "../file/handle";
import { GgufModel } from "../file/model";
import { RemoteGgufTensor, type RemoteOpenFile } from "../file/remote-tensor";
import type { TensorPlace } from "../file/tensor-map";
import { VirtualSource, type VirtualTensor } from "../file/virtual-source";
import { CURRENT_FORMAT, HeaderBytes } from "../layout/header-bytes";
import type { Source } from "../source/source";
import { DTYPES, type SafetensorsDtype } from "./dtypes";
import { readSafetensorsHeader, type StoredTensor } from "./header";

/** An open file: to the rest of the library, a GGUF file with the same tensors. @internal */
export interface SafetensorsOpenFile extends RemoteOpenFile {
  readonly stored: readonly StoredTensor[];
  readonly fileBytes: number;
}

/** Before the keys of `__metadata__`, which mean nothing to what reads GGUF. */
const KEY_PREFIX = "safetensors.";

const STRING = TYPE_NAMES.indexOf("string");

/** The most dimensions of ggml. */
const MAX_DIMS = 4;

/** Closes the files of models that nobody closed. */
const registry = new FinalizationRegistry<Source>((source) => void source.close().catch(() => undefined));

/** Reads the header of a file. Where that fails, the source is closed. @internal */
export async function openSafetensorsSource(
  source: Source,
  signal: AbortSignal | undefined,
): Promise<SafetensorsOpenFile> {
  try {
    const { metadata, tensors } = await readSafetensorsHeader(source, signal);
    // All in one, since there may be a million of them.
    const entries = new HeaderBytes(CURRENT_FORMAT);
    for (const [key, value] of metadata) {
      entries
        .string(KEY_PREFIX + key)
        .int(4, STRING)
        .string(value);
    }
    const virtual = new VirtualSource(
      source.path,
      [entries.bytes],
      tensors.map((tensor) => shown(tensor, source)),
      source,
      metadata.size,
    );
    const file = new OpenFile(virtual.handle, source.path);
    registry.register(file, virtual);
    return Object.assign(file, { source: virtual, stored: tensors, fileBytes: source.byteLength });
  } catch (error) {
    await source.close();
    throw error;
  }
}

/** A tensor as it is in the model. */
function shown({ name, dtype, shape, begin }: StoredTensor, source: Source): VirtualTensor {
  const { type, bytes: size, widen } = DTYPES[dtype];
  const dims = [...shape].reverse();
  const rest = dims.splice(MAX_DIMS - 1);
  if (rest.length > 0) dims.push(rest.reduce((product, dim) => product * dim, 1));
  /** Bytes in the model for each in the file. */
  const factor = ggmlTypes[type].typeSize / size;
  const read: VirtualTensor["read"] = async (from, target, signal, arrived) => {
    const before = from % factor;
    if (before !== 0 || target.length % factor !== 0) {
      // Half a byte at an end.
      const whole = new Uint8Array(Math.ceil((before + target.length) / factor) * factor);
      await read(from - before, whole, signal);
      target.set(whole.subarray(before, before + target.length));
      return;
    }
    const stored = target.subarray(target.length - target.length / factor);
    await source.read(begin + from / factor, stored, signal, arrived && ((count) => arrived(count * factor)));
    try {
      widen?.(target);
    } catch (error) {
      throw error instanceof GgufError ? errorAbout(error, { path: source.path, tensor: name }) : error;
    }
  };
  return { name, type, shape: dims, read };
}

/**
 * A tensor of a {@link SafetensorsFile}. `type` is the type of ggml that holds its numbers exactly: F16 for `F4` and types
 * of eight bits, BF16 for `F8_E8M0`, the next larger signed integer for unsigned ones, I8 for `BOOL`; {@link dtype} tells what is
 * stored. `shape` has the contiguous dimension first, and the outer ones in one where there are more than four. `read` gives the
 * bytes of `type`.
 */
export class SafetensorsTensor extends RemoteGgufTensor {
  readonly #stored: StoredTensor;

  private constructor(place: TensorPlace<SafetensorsOpenFile>) {
    super(place);
    this.#stored = place.file.stored[place.position] as StoredTensor;
  }

  /** @internal */
  static override at(this: void, place: TensorPlace): SafetensorsTensor {
    return new SafetensorsTensor(place as TensorPlace<SafetensorsOpenFile>);
  }

  /** The type in the file. */
  get dtype(): SafetensorsDtype {
    return this.#stored.dtype;
  }

  override get offset(): number {
    return this.#stored.begin;
  }

  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), dtype: this.dtype };
  }
}

/**
 * A safetensors model, in one file or several: the same interface as that of a GGUF file on a server. The keys of
 * `__metadata__` are in `metadata` with `safetensors.` before them. {@link close} lets the files go: work that is under way then
 * fails with ERR_GGUF_CLOSED.
 */
export class SafetensorsFile extends GgufModel<SafetensorsTensor> {
  readonly #opened: readonly SafetensorsOpenFile[];

  private constructor(files: readonly [SafetensorsOpenFile, ...SafetensorsOpenFile[]]) {
    super(files, SafetensorsTensor.at);
    this.#opened = files;
  }

  /** @internal */
  static of(files: readonly [SafetensorsOpenFile, ...SafetensorsOpenFile[]]): SafetensorsFile {
    return new SafetensorsFile(files);
  }

  override get format(): "safetensors" {
    return "safetensors";
  }

  override get byteLength(): number {
    return this.#opened.reduce((sum, { fileBytes }) => sum + fileBytes, 0);
  }

  override close(): void {
    super.close();
    for (const file of this.#opened) {
      registry.unregister(file);
      file.source.close().catch(() => undefined);
    }
  }
}

/** Reading the header of a file from wherever its bytes come from. */

import { type NativeFile, native } from "../backend/native";
import { errorAbout, GgufError } from "../base/errors";
import type { Source } from "./source";

/** How much is read of a header. */
export interface HeaderLimits {
  /** Read at first. Where the header is longer, twice as much is read, and so on. */
  readonly firstBytes: number;
  /** The longest header. Known ones have some 10 MiB; a hostile file can promise any length. */
  readonly maxBytes: number;
}

/** A header that was read. */
export interface ReadHeader {
  readonly handle: NativeFile;
  /** All bytes up to the tensor data. `handle` refers to them: they must stay as they are. */
  readonly bytes: Uint8Array;
}

/**
 * Reads the header in growing steps, and parses it. The last step may read some of what follows it as well.
 *
 * @param partial accept a file that is shorter than its header says
 * @throws GgufError as `open`
 */
export async function readHeader(
  source: Source,
  limits: HeaderLimits,
  partial: boolean,
  signal?: AbortSignal,
): Promise<ReadHeader> {
  let bytes = new Uint8Array(Math.min(limits.firstBytes, source.byteLength));
  let length = await source.read(0, bytes, signal);
  for (;;) {
    const handle = parse(source, bytes.subarray(0, length), partial);
    if (handle !== undefined) return withoutSlack(source, handle, bytes, length, partial);
    if (length >= limits.maxBytes) {
      const detail = `the header is longer than ${limits.maxBytes} bytes, too long to be read`;
      throw new GgufError("ERR_GGUF_INVALID", detail, { path: source.path, offset: length });
    }
    const grown = new Uint8Array(Math.min(2 * length, limits.maxBytes, source.byteLength));
    grown.set(bytes.subarray(0, length));
    bytes = grown;
    length += await source.read(length, bytes.subarray(length), signal);
  }
}

/**
 * The handle keeps all the memory that it was parsed from, and many shards have headers of a few hundred bytes. So the
 * header is parsed once more, from a copy of the right size.
 */
function withoutSlack(
  source: Source,
  handle: NativeFile,
  bytes: Uint8Array,
  length: number,
  partial: boolean,
): ReadHeader {
  const end = Math.min(length, native.info(handle).dataOffset);
  if (end === bytes.length) return { handle, bytes };
  const copy = bytes.slice(0, end);
  native.close(handle);
  return { handle: parse(source, copy, partial) as NativeFile, bytes: copy };
}

/** Undefined if the header is longer than `bytes`. */
function parse(source: Source, bytes: Uint8Array, partial: boolean): NativeFile | undefined {
  try {
    return native.parse(bytes, partial, source.byteLength);
  } catch (error) {
    throw error instanceof GgufError ? errorAbout(error, { path: source.path }) : error;
  }
}

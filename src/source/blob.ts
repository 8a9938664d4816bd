/** A `Blob`, such as a file that was chosen or dropped in a browser. */
import { GgufError } from "../base/errors";
import { type Arrived, changedError, type Source } from "./source";

/** What is read at a time: a blob gives its bytes in memory of its own, from which they are copied. */
const PART_BYTES = 4 << 20;

/** What a browser says of a file that was edited or removed since it was chosen. */
const GONE = ["NotReadableError", "NotFoundError"];

/** The name of a file; a blob that is no file has none. */
export function blobName(blob: Blob): string {
  const { name } = blob as { name?: unknown };
  return typeof name === "string" ? name : "blob";
}

export class BlobSource implements Source {
  readonly path: string;
  readonly byteLength: number;
  readonly #blob: Blob;
  #wasRead = false;

  constructor(blob: Blob) {
    this.path = blobName(blob);
    this.byteLength = blob.size;
    this.#blob = blob;
  }

  async read(begin: number, target: Uint8Array, signal?: AbortSignal, arrived?: Arrived): Promise<number> {
    const length = Math.max(0, Math.min(target.length, this.byteLength - begin));
    for (let done = 0; done < length; ) {
      signal?.throwIfAborted();
      const part = await this.#part(begin + done, Math.min(length - done, PART_BYTES));
      signal?.throwIfAborted();
      target.set(part, done);
      done += part.length;
      arrived?.(done);
    }
    return length;
  }

  async #part(begin: number, byteLength: number): Promise<Uint8Array> {
    let bytes: Uint8Array;
    try {
      bytes = new Uint8Array(await this.#blob.slice(begin, begin + byteLength).arrayBuffer());
    } catch (cause) {
      const { name, message } = cause as Error;
      if (this.#wasRead && GONE.includes(name)) {
        throw changedError(this.path, "it was edited, moved or removed");
      }
      const hint = GONE.includes(name) ? "; if it was edited or moved, choose it again" : "";
      const detail = `cannot read the file: ${message}${hint}`;
      throw new GgufError("ERR_GGUF_OPEN", detail, { path: this.path, cause });
    }
    if (bytes.length < byteLength) {
      throw changedError(this.path, `it ends at byte ${begin + bytes.length}, and had ${this.byteLength} bytes`);
    }
    this.#wasRead = true;
    return bytes;
  }

  /** Nothing is left to do: a blob gives the bytes that it had, or none. */
  async check(): Promise<void> {}

  async close(): Promise<void> {}
}

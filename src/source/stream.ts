/** Bytes that come one after the other, such as those of standard input: as much of them as the header of a file takes. */
import type { Source } from "./source";

/** A stream that is read from its start on, and no further than it has to be. */
export class StreamSource implements Source {
  readonly path: string;
  readonly #readSome: (target: Uint8Array) => Promise<number>;
  #byteLength = Number.MAX_SAFE_INTEGER;

  /** @param readSome reads at least one byte into its argument, and returns how many; 0 at the end */
  constructor(path: string, readSome: (target: Uint8Array) => Promise<number>) {
    this.path = path;
    this.#readSome = readSome;
  }

  /** As long as its end has not come, more than any file has. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** @param begin where the last call has ended */
  async read(begin: number, target: Uint8Array, signal?: AbortSignal): Promise<number> {
    let done = 0;
    while (done < target.length) {
      signal?.throwIfAborted();
      const count = await this.#readSome(target.subarray(done));
      if (count === 0) {
        this.#byteLength = begin + done;
        break;
      }
      done += count;
    }
    return done;
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {}
}

/** A file that appears under its name only when it is complete. */
import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

export class OutputFile {
  readonly #path: string;
  readonly #temporary: string;
  #fd: number | undefined;
  readonly #interrupted = (signal: NodeJS.Signals): void => {
    this.discard();
    process.kill(process.pid, signal);
  };

  constructor(path: string) {
    this.#path = path;
    this.#temporary = `${path}.${process.pid}.tmp`;
    // Before there is anything to remove.
    process.once("SIGINT", this.#interrupted).once("SIGTERM", this.#interrupted);
    try {
      this.#fd = openSync(this.#temporary, "wx");
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  write(bytes: Uint8Array): void {
    if (this.#fd === undefined) throw new Error("the file is closed");
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#fd, bytes, done);
  }

  /** Puts the file under its final name. */
  commit(): void {
    this.#close();
    renameSync(this.#temporary, this.#path);
  }

  /** Leaves nothing behind. */
  discard(): void {
    this.#close();
    rmSync(this.#temporary, { force: true });
  }

  #close(): void {
    process.off("SIGINT", this.#interrupted).off("SIGTERM", this.#interrupted);
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

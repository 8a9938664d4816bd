/** A file that appears under its name only when it is complete. */
import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

export class OutputFile {
  readonly #path: string;
  readonly #temporary: string;
  readonly #fd: number;
  readonly #interrupted = (signal: NodeJS.Signals): void => {
    this.discard();
    process.kill(process.pid, signal);
  };

  constructor(path: string) {
    this.#path = path;
    this.#temporary = `${path}.${process.pid}.tmp`;
    this.#fd = openSync(this.#temporary, "wx");
    process.once("SIGINT", this.#interrupted).once("SIGTERM", this.#interrupted);
  }

  write(bytes: Uint8Array): void {
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
    closeSync(this.#fd);
  }
}

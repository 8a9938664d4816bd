/** A line that says how far a command has got. */
import { escapeText } from "./text";

/** Milliseconds between two updates. */
const UPDATE_MS = 100;

/** The terminal that shows the line. */
interface ProgressStream {
  write(text: string): unknown;
  readonly columns?: number | undefined;
}

/** A progress line. It is removed at the end. */
export class Progress {
  readonly #label: string;
  readonly #stream: ProgressStream | undefined;
  readonly #begin = performance.now();
  #last = 0;
  #done = 0;
  #total: number;

  /**
   * @param total how much there is to do, in bytes or in steps
   * @param stream where the line is shown; nowhere without one
   */
  constructor(label: string, total: number, stream: ProgressStream | undefined) {
    this.#label = escapeText(label);
    this.#total = total;
    this.#stream = stream;
  }

  /** So much more is done. */
  advance(amount: number): void {
    this.update(this.#done + amount, this.#total);
  }

  /** So much is done, of so much. */
  update(done: number, total: number): void {
    this.#done = done;
    this.#total = total;
    const now = performance.now();
    if (this.#stream === undefined || now - this.#last < UPDATE_MS) return;
    this.#last = now;
    const percent = Math.floor((done / Math.max(total, 1)) * 100);
    const left = Math.ceil(((now - this.#begin) / 1000 / Math.max(done, 1)) * (total - done));
    const end = `  ${percent} %  ${left} s left`;
    const room = (this.#stream.columns || 80) - end.length - 1;
    this.#stream.write(`\r\x1b[K${this.#label.slice(0, Math.max(0, room))}${end}`);
  }

  /** Removes the line, until there is more progress. */
  end(): void {
    if (this.#last > 0) this.#stream?.write("\r\x1b[K");
    this.#last = 0;
  }
}

/** A line that says how far a command has got. */
import { escapeText, grouped } from "../../describe/text";
import { textWidth, truncate } from "./text-width";

/** Milliseconds between two updates. */
const UPDATE_MS = 100;

/** Seconds until the time that is left is told. */
const FIRST_GUESS_S = 0.1;

/** Columns of the bar. */
const LEAST_BAR = 6;
const MOST_BAR = 24;

/** Columns of a label that is worth showing. */
const LEAST_LABEL = 8;

/** The terminal that shows the line. */
interface ProgressStream {
  write(text: string): unknown;
  readonly columns?: number | undefined;
}

/** What is counted: only bytes have a rate. */
export type ProgressUnit = "bytes" | "steps";

/** A progress line. It is removed at the end. */
export class Progress {
  readonly #label: string;
  readonly #unit: ProgressUnit;
  readonly #stream: ProgressStream | undefined;
  readonly #begin = performance.now();
  #last = 0;
  #isWhole = false;
  #done = 0;
  #total: number;

  /**
   * @param total how much there is to do
   * @param stream where the line is shown; nowhere without one
   */
  constructor(label: string, total: number, unit: ProgressUnit, stream: ProgressStream | undefined) {
    this.#label = escapeText(label);
    this.#total = total;
    this.#unit = unit;
    this.#stream = stream;
  }

  /** So much more is done. */
  advance(amount: number): void {
    this.update(this.#done + amount, this.#total);
  }

  /** So much of it is done; without a line where none is shown. */
  advanceTo(done: number): void {
    if (this.#last > 0) this.update(done, this.#total);
    else this.#done = done;
  }

  /** So much is done, of so much. */
  update(done: number, total: number): void {
    this.#done = done;
    this.#total = total;
    const now = performance.now();
    if (this.#stream === undefined || total <= 0) return;
    // The end is shown in any case, where there was a line before.
    const isEnd = done >= total && this.#last > 0 && !this.#isWhole;
    if (now - this.#last < UPDATE_MS && !isEnd) return;
    this.#last = now;
    this.#isWhole = done >= total;
    const columns = this.#stream.columns || 80;
    this.#stream.write(`\r\x1b[K${this.#line((now - this.#begin) / 1000, columns)}`);
  }

  /** The line after so many seconds, a column shorter than the terminal: in the last one some begin a new line. */
  #line(seconds: number, columns: number): string {
    const share = Math.min(1, this.#done / this.#total);
    const rate = this.#done / Math.max(seconds, 1e-3);
    // Too early, the first steps alone would tell how long the rest takes.
    const isKnown = rate > 0 && seconds >= FIRST_GUESS_S;
    const left = isKnown ? `${timeText((this.#total - this.#done) / rate)} left` : "";
    const numbers = [
      `${String(Math.floor(share * 100)).padStart(3)} %`,
      ...(this.#unit === "bytes" ? [`${grouped(Math.round(rate / 1e6))} MB/s`.padStart(10)] : []),
      left.padStart(9),
    ].join("  ");
    const room = columns - 1 - textWidth(numbers) - 2;
    if (room < LEAST_BAR) return truncate(numbers, columns - 1);
    const labelRoom = room - LEAST_BAR - 2;
    const hasLabel = labelRoom >= LEAST_LABEL;
    const label = hasLabel ? `${truncate(this.#label, labelRoom)}  ` : "";
    const width = Math.min(MOST_BAR, room - textWidth(label));
    const full = Math.floor(share * width);
    return `${label}${"█".repeat(full)}${"░".repeat(width - full)}  ${numbers}`;
  }

  /** Removes the line, until there is more progress. */
  end(): void {
    if (this.#last > 0) this.#stream?.write("\r\x1b[K");
    this.#last = 0;
  }
}

/** 75 seconds as "2 min": never less than it takes. */
function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${grouped(Math.ceil(seconds / 3600))} h`;
}

/** What commands say, and where: width, emphasis, messages and progress. */
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { exactJson } from "./json";
import { escapeJson, escapeText } from "./text";

const STDOUT = 1;

/** The least that tables are made for. */
const LEAST_COLUMNS = 40;

/** Columns to write to: the terminal's, COLUMNS, or 80 where neither is known. */
export function outputWidth(): number {
  const columns = process.stdout.isTTY ? process.stdout.columns : Number(process.env.COLUMNS);
  return Number.isInteger(columns) && columns > 0 ? Math.max(LEAST_COLUMNS, columns) : 80;
}

function emphasis(on: number, off: number): (text: string) => string {
  return (text) => {
    const plain = !process.stdout.isTTY || process.env.NO_COLOR || process.env.TERM === "dumb";
    return plain ? text : `\x1b[${on}m${text}\x1b[${off}m`;
  };
}

/** Bold, green and red, where standard output is a terminal that wants it. */
export const heading = emphasis(1, 22);
export const good = emphasis(32, 39);
export const bad = emphasis(31, 39);

/** Prints lines; where there are none, nothing. */
export function print(lines: readonly string[]): void {
  write(lines.map((line) => `${line}\n`).join(""));
}

/** Prints a value as JSON that loses nothing. */
export function printJson(value: unknown): void {
  printJsonText(`${exactJson(value, 2)}\n`);
}

/** Prints JSON, or a piece of it, with what could move a terminal escaped. */
export function printJsonText(json: string): void {
  write(escapeJson(json));
}

/** For a file, Node's own stream takes a disk that had room for a part of the text for one that took all of it. */
function write(text: string): void {
  if (process.stdout instanceof Socket) process.stdout.write(text);
  else writeFileSync(STDOUT, Buffer.from(text));
}

/** Says on standard error what is wrong, in one line. */
export function complain(message: string): void {
  process.stderr.write(`gguf-native: ${escapeText(message)}\n`);
}

/** Milliseconds between two updates of a progress line. */
const UPDATE = 100;

/** A line on standard error that says how far a command has got, where that is a terminal; gone once it is done. */
export class Progress {
  readonly #label: string;
  readonly #shown = process.stderr.isTTY && process.env.TERM !== "dumb";
  readonly #begin = performance.now();
  #last = 0;
  #done = 0;
  #total: number;

  /** @param total how much there is to do, in bytes or in steps */
  constructor(label: string, total: number) {
    this.#label = escapeText(label);
    this.#total = total;
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
    if (!this.#shown || now - this.#last < UPDATE) return;
    this.#last = now;
    const percent = Math.floor((done / Math.max(total, 1)) * 100);
    const left = Math.ceil(((now - this.#begin) / 1000 / Math.max(done, 1)) * (total - done));
    const columns = process.stderr.columns || 80;
    const end = `  ${percent} %  ${left} s left`;
    process.stderr.write(`\r\x1b[K${this.#label.slice(0, Math.max(0, columns - end.length - 1))}${end}`);
  }

  /** Removes the line. */
  end(): void {
    if (this.#shown && this.#last > 0) process.stderr.write("\r\x1b[K");
  }
}

/** Runs `work` under a progress line. */
export async function withProgress<T>(
  label: string,
  total: number,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = new Progress(label, total);
  try {
    return await work(progress);
  } finally {
    progress.end();
  }
}

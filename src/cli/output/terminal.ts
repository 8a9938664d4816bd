/** What a command prints, and where: width, emphasis, messages, progress. */

import { escapeJson, escapeText } from "../../describe/text";
import { exactJson } from "./json";
import { Progress, type ProgressUnit } from "./progress";
import { type Column, facts, type Row, table, wrapWhole } from "./table";

/** A stream that a command writes text to. */
export interface TextStream {
  write(text: string | Uint8Array): unknown;
  /** Resolves once what was written has gone on its way; absent, or undefined, where there is nothing to wait for. */
  drained?(): Promise<void> | undefined;
  /** Whether it is a terminal. */
  readonly isTTY?: boolean | undefined;
  /** The width of that terminal. */
  readonly columns?: number | undefined;
  /** Whether that terminal shows colours. */
  hasColors?(env: object): boolean;
}

/** Everything that printing depends on. */
export interface Streams {
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  /** Environment variables: COLUMNS, NO_COLOR, FORCE_COLOR, TERM. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The least that tables are made for. */
const LEAST_COLUMNS = 40;

/** Characters that are written at a time, at least, of what comes in pieces. */
const LEAST_WRITE = 1 << 16;

/** Emphasis: the codes that turn it on and off. */
const BOLD = [1, 22] as const;
const DIM = [2, 22] as const;
/** Of the eight colours, the one that can be read on black and on white alike, and means nothing. */
const MAGENTA = [35, 39] as const;
const GREEN = [32, 39] as const;
const RED = [31, 39] as const;

/** The terminal of a command, or whatever its streams lead to. */
export class Terminal {
  readonly #streams: Streams;
  #hasColors: boolean | undefined;

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  /** Columns to write to: the terminal's, COLUMNS, or 80 where neither is known. */
  get width(): number {
    const { stdout, env } = this.#streams;
    const columns = stdout.isTTY ? stdout.columns : Number(env.COLUMNS);
    const isKnown = columns !== undefined && Number.isInteger(columns) && columns > 0;
    return isKnown ? Math.max(LEAST_COLUMNS, columns) : 80;
  }

  /** What is at the head of a section; what is beside the point; names of types; good and bad news. */
  readonly heading = (text: string): string => this.#emphasized(text, BOLD);
  readonly quiet = (text: string): string => this.#emphasized(text, DIM);
  readonly type = (text: string): string => this.#emphasized(text, MAGENTA);
  readonly good = (text: string): string => this.#emphasized(text, GREEN);
  readonly bad = (text: string): string => this.#emphasized(text, RED);

  /** Whether what is printed is for eyes alone. */
  get isTerminal(): boolean {
    return this.#streams.stdout.isTTY === true;
  }

  /** Lays out a table for this terminal; goes through the rows twice. */
  table(columns: readonly Column[], rows: Iterable<Row>, stacks = false): Iterable<string> {
    return table(columns, rows, this.width, { paintTitle: this.quiet, stacks });
  }

  /** Names and values, a line each. */
  facts(rows: readonly (readonly [name: string, value: string])[]): string[] {
    return facts(rows, this.width, this.quiet);
  }

  #emphasized(text: string, [on, off]: readonly [number, number]): string {
    this.#hasColors ??= hasColors(this.#streams);
    return this.#hasColors ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  }

  /** Prints lines (already escaped); where there are none, nothing. */
  print(lines: readonly string[]): void {
    this.printText(lines.map((line) => `${line}\n`).join(""));
  }

  /** Prints text (already escaped) as it is. */
  printText(text: string): void {
    this.#streams.stdout.write(text);
  }

  /** Prints a value as JSON that loses nothing. What could move a terminal is escaped. */
  printJson(value: unknown): void {
    this.printText(escapeJson(`${exactJson(value, 2)}\n`));
  }

  /** Prints JSON that comes in pieces, no faster than its reader takes it. What could move a terminal is escaped. */
  async printJsonPieces(pieces: Iterable<string>): Promise<void> {
    for (const text of joined(pieces)) {
      this.printText(escapeJson(text));
      await this.#streams.stdout.drained?.();
    }
  }

  /** Prints lines (already escaped) as they are made, no faster than their reader takes them. */
  async printLines(lines: Iterable<string>): Promise<void> {
    for (const text of joined(lines, "\n")) {
      this.printText(text);
      await this.#streams.stdout.drained?.();
    }
  }

  /**
   * Prints bytes that come in pieces, no faster than their reader takes them. Where that is a terminal, they are text, and
   * what could move it is escaped, but for ends of lines and tabs; with `isRaw` nothing is.
   */
  async printBytes(pieces: Iterable<Uint8Array>, isRaw: boolean): Promise<void> {
    const { stdout } = this.#streams;
    const escaped = stdout.isTTY && !isRaw ? escapedText(pieces) : pieces;
    for (const piece of escaped) {
      stdout.write(piece);
      await stdout.drained?.();
    }
  }

  /** Says on standard error what is wrong, in one line, or in as many as a terminal needs. */
  complain(message: string): void {
    const { isTTY, columns } = this.#streams.stderr;
    const text = `gguf-native: ${escapeText(message)}`;
    const width = isTTY ? Math.max(LEAST_COLUMNS, columns || 80) : Number.POSITIVE_INFINITY;
    this.#streams.stderr.write(`${wrapWhole(text, width, true).join("\n")}\n`);
  }

  /** Passes on to standard error what another program prints, as it is. */
  log(text: string): void {
    this.#streams.stderr.write(text);
  }

  /**
   * Runs `work` under a progress line.
   * @param total how much there is to do; 0 where it is not known yet
   */
  async withProgress<T>(
    label: string,
    total: number,
    work: (progress: Progress) => Promise<T>,
    unit: ProgressUnit = "bytes",
  ): Promise<T> {
    const { stderr, env } = this.#streams;
    const stream = stderr.isTTY && env.TERM !== "dumb" ? stderr : undefined;
    const progress = new Progress(label, total, unit, stream);
    try {
      return await work(progress);
    } finally {
      progress.end();
    }
  }
}

/** Bytes as text, without what could move a terminal. */
function* escapedText(pieces: Iterable<Uint8Array>): Generator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for (const piece of pieces) {
    yield decoder.decode(piece, { stream: true }).replace(/[^\n\t]+/g, escapeText);
  }
  yield decoder.decode();
}

/** Short pieces, each with `end` after it, as long ones. */
function* joined(pieces: Iterable<string>, end = ""): Generator<string, void, undefined> {
  let text = "";
  for (const piece of pieces) {
    text += piece + end;
    if (text.length < LEAST_WRITE) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

/** Whether output has colours: as FORCE_COLOR or NO_COLOR says, or else as the terminal is. */
function hasColors({ stdout, env }: Streams): boolean {
  const { FORCE_COLOR: force, NO_COLOR: no, ...rest } = env;
  if (force) return force !== "0" && force !== "false";
  if (no || !stdout.isTTY || env.TERM === "dumb") return false;
  return stdout.hasColors?.(rest) ?? true;
}

/** What a command prints, and where: width, emphasis, messages, progress. */
import { exactJson } from "./json";
import { Progress } from "./progress";
import { escapeJson, escapeText } from "./text";

/** A stream that a command writes text to. */
export interface TextStream {
  write(text: string): unknown;
  /** Resolves once what was written has gone on its way; absent, or undefined, where there is nothing to wait for. */
  drained?(): Promise<void> | undefined;
  /** Whether it is a terminal. */
  readonly isTTY?: boolean | undefined;
  /** The width of that terminal. */
  readonly columns?: number | undefined;
}

/** Everything that printing depends on. */
export interface Streams {
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  /** Environment variables: COLUMNS, NO_COLOR, TERM. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The least that tables are made for. */
const LEAST_COLUMNS = 40;

/** Characters of JSON that are written at a time, at least. */
const LEAST_WRITE = 1 << 16;

/** Emphasis: the codes that turn it on and off. */
const BOLD = [1, 22] as const;
const GREEN = [32, 39] as const;
const RED = [31, 39] as const;

/** The terminal of a command, or whatever its streams lead to. */
export class Terminal {
  readonly #streams: Streams;

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

  /** Bold, green and red text, where standard output is a terminal and NO_COLOR is not set. */
  heading(text: string): string {
    return this.#emphasized(text, BOLD);
  }
  good(text: string): string {
    return this.#emphasized(text, GREEN);
  }
  bad(text: string): string {
    return this.#emphasized(text, RED);
  }

  #emphasized(text: string, [on, off]: readonly [number, number]): string {
    const { stdout, env } = this.#streams;
    const isPlain = !stdout.isTTY || env.NO_COLOR || env.TERM === "dumb";
    return isPlain ? text : `\x1b[${on}m${text}\x1b[${off}m`;
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
    let text = "";
    for (const piece of pieces) {
      text += piece;
      if (text.length < LEAST_WRITE) continue;
      this.printText(escapeJson(text));
      text = "";
      await this.#streams.stdout.drained?.();
    }
    this.printText(escapeJson(text));
  }

  /** Says on standard error what is wrong, in one line. */
  complain(message: string): void {
    this.#streams.stderr.write(`gguf-native: ${escapeText(message)}\n`);
  }

  /** Passes on to standard error what another program prints, as it is. */
  log(text: string): void {
    this.#streams.stderr.write(text);
  }

  /**
   * Runs `work` under a progress line.
   * @param total how much there is to do, in bytes or in steps; 0 where it is not known yet
   */
  async withProgress<T>(label: string, total: number, work: (progress: Progress) => Promise<T>): Promise<T> {
    const { stderr, env } = this.#streams;
    const progress = new Progress(label, total, stderr.isTTY && env.TERM !== "dumb" ? stderr : undefined);
    try {
      return await work(progress);
    } finally {
      progress.end();
    }
  }
}

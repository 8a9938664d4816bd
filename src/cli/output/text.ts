/** Text for terminals: escaping, widths, sizes, tables. */

/** Control characters (C0, DEL, C1), line separators and bidirectional overrides: what could move a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const SHORT: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

/** `text` with everything that is not plain printing text written as `\n`, `\x1b` or `\u202e`. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, (char) => {
    const code = char.charCodeAt(0);
    return SHORT[char] ?? (code < 256 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`);
  });
}

/** JSON with the same written as `\u202e`: the same to its reader. Of C0, only the line feeds of its layout are in it. */
export function escapeJson(json: string): string {
  return json.replace(UNSAFE, (char) => (char === "\n" ? char : `\\u${hex(char.charCodeAt(0), 4)}`));
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE =
  /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

function charWidth(char: string): number {
  if (char < "\u0300") return 1;
  return ZERO_WIDTH.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
}

/** Terminal columns that `text` takes. */
export function textWidth(text: string): number {
  let width = 0;
  for (const char of text) width += charWidth(char);
  return width;
}

/** `text` cut to `width` columns, an ellipsis at the end where something was cut off. */
export function truncate(text: string, width: number): string {
  if (text.length <= width && textWidth(text) <= width) return text;
  let result = "";
  let left = width - 1;
  for (const char of text) {
    left -= charWidth(char);
    if (left < 0) break;
    result += char;
  }
  return `${result}…`;
}

function pad(text: string, width: number, align: "left" | "right"): string {
  const spaces = " ".repeat(Math.max(0, width - textWidth(text)));
  return align === "left" ? text + spaces : spaces + text;
}

export interface Column {
  title: string;
  align?: "left" | "right";
  /** Shrinks to this many columns, but no further, where a table is too wide. The last such column shrinks first. */
  min?: number;
}

/** Lays out rows (already escaped) in columns, indented by two, no line longer than `width` as far as `min` allows. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const widths = columns.map(({ title }) => title.length);
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, textWidth(cell));
    });
  }
  let excess = widths.reduce((sum, w) => sum + w + 2, 0) - width;
  for (let i = columns.length - 1; i >= 0 && excess > 0; i--) {
    const least = columns[i]?.min;
    const now = widths[i] ?? 0;
    if (least === undefined || now <= least) continue;
    widths[i] = Math.max(least, now - excess);
    excess -= now - (widths[i] ?? 0);
  }
  const line = (cells: readonly string[]): string =>
    cells
      .map(
        (cell, i) => `  ${pad(truncate(cell, widths[i] ?? 0), widths[i] ?? 0, columns[i]?.align ?? "left")}`,
      )
      .join("")
      .trimEnd();
  const titles = columns.map(({ title }) => title);
  return [...(titles.some((title) => title !== "") ? [line(titles)] : []), ...rows.map(line)];
}

/** 1536 as "1.5 KiB". */
export function humanBytes(bytes: number): string {
  if (Number.isNaN(bytes)) return "?";
  return scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
}

/** 7241732096 as "7.24 B" (billion). */
export function humanCount(count: number): string {
  return scaled(count, 1000, ["", "K", "M", "B", "T", "Q"]);
}

function scaled(value: number, base: number, units: readonly string[]): string {
  let unit = 0;
  let rest = value;
  // 999.5 and up would print as 1000
  for (; rest >= base - 0.5 && unit < units.length - 1; unit++) rest /= base;
  const digits = unit === 0 ? 0 : rest < 10 ? 2 : rest < 100 ? 1 : 0;
  return `${rest.toFixed(digits)} ${units[unit]}`.trimEnd();
}

/** 32000 as "32,000". */
export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

/** "1 tensor", "2 tensors". */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A shape as stored, contiguous dimension first: "4096 x 32000". */
export function shapeText(shape: readonly number[]): string {
  return shape.length === 0 ? "scalar" : shape.join(" x ");
}

/** A binary32 in the fewest digits that tell it from its neighbours: 0.1 rather than 0.10000000149011612. */
export function float32Text(value: number): string {
  if (Object.is(value, -0)) return "-0";
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

/** `gguf-native show`: values of a tensor at a glance. */

import { escapeText, float32Text, grouped, shapeText } from "../../describe/text";
import { valuesOf } from "../../describe/values";
import { MODEL_HELP, MODEL_OPTIONS, withPartialModel } from "../arguments/open-model";
import { expectPositionals, indexRange, parse, UsageError } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native show FILE|URL TENSOR [--rows A:B] [--columns C:D] [options]

Shows values of a tensor as they lie in its rows. A row is as long as the first
dimension of the shape; all rows of the tensor are numbered in their order.
The command reads or fetches only these values.

  --rows A:B          from row A up to, but not with, row B; A alone is one row,
                      either end may be left out (default 0:8)
  --columns C:D       the same of the columns (default 0:8)
  --json              exactly, as JSON
${MODEL_HELP}
Values are rounded to four digits, those of a row after the same decimal. JSON
has them in full.

Examples:
  gguf-native show model.gguf blk.0.attn_q.weight
  gguf-native show model.gguf token_embd.weight --rows 15043 --columns :16
  gguf-native show model.gguf output_norm.weight --columns 0:256
  gguf-native show --json model.gguf output.weight --rows 0:4 | jq .values
`;

const OPTIONS = {
  rows: { type: "string" },
  columns: { type: "string" },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

/** The rows and columns that are shown by default. */
const FEW = 8;

/** The most values that are shown: more are no glance. */
const MOST_VALUES = 2 ** 16;

/** The most rows: each is a request to a server. */
const MOST_ROWS = 2 ** 12;

/** Rows that are read at the same time. */
const AT_ONCE = 8;

/** From a first number up to, but not with, another one. */
interface Range {
  start: number;
  end: number;
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, name] = expectPositionals(positionals, "FILE|URL", "TENSOR");
  const [wantedRows, wantedColumns] = [indexRange("--rows", values.rows), indexRange("--columns", values.columns)];
  await withPartialModel(path, values, async (model) => {
    const tensor = model.file.tensor(name);
    const rowLength = tensor.shape[0] ?? 1;
    const rowCount = rowLength === 0 ? 0 : tensor.elementCount / rowLength;
    const rows = rangeOf("rows", wantedRows, rowCount);
    const columns = rangeOf("columns", wantedColumns, rowLength);
    if ((rows.end - rows.start) * (columns.end - columns.start) > MOST_VALUES) {
      throw new UsageError(
        `--rows and --columns select more than ${grouped(MOST_VALUES)} values: 'gguf-native dequantize' writes them to a file`,
      );
    }
    if (rows.end - rows.start > MOST_ROWS) throw new UsageError(`--rows selects more than ${grouped(MOST_ROWS)} rows`);
    const matrix: Float32Array[] = [];
    for (let row = rows.start; row < rows.end; row += AT_ONCE) {
      const length = Math.min(AT_ONCE, rows.end - row);
      const starts = Array.from({ length }, (_, i) => (row + i) * rowLength + columns.start);
      const count = columns.end - columns.start;
      matrix.push(...(await Promise.all(starts.map((start) => valuesOf(tensor, start, count)))));
    }
    if (values.json) {
      const { type, shape } = tensor;
      const range = ({ start, end }: Range): number[] => [start, end];
      const selected = { rows: range(rows), columns: range(columns), values: matrix };
      terminal.printJson({ path: model.path, name: tensor.name, type, shape, ...selected });
    } else {
      const selection = `rows ${rangeText(rows, rowCount)}, columns ${rangeText(columns, rowLength)}`;
      terminal.print([
        terminal.heading(escapeText(tensor.name)),
        ...terminal.facts([
          ["type", tensor.type],
          ["shape", shapeText(tensor.shape)],
          ["shown", selection],
        ]),
        ...matrixLines(matrix, rows.start, columns, terminal),
      ]);
    }
  });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** What of `count` rows or columns is meant; an end beyond the last is the last. */
function rangeOf(what: string, wanted: ReturnType<typeof indexRange>, count: number): Range {
  const { start, end } = wanted ?? { start: 0, end: FEW };
  if (start >= count && (count > 0 || wanted !== undefined)) {
    throw new UsageError(`--${what} begins at ${start}, but there are ${grouped(count)} ${what}`);
  }
  return { start, end: Math.min(end ?? count, count) };
}

function rangeText({ start, end }: Range, count: number): string {
  if (end <= start) return `none of ${grouped(count)}`;
  return end - start === 1 ? `${start} of ${grouped(count)}` : `${start} to ${end - 1} of ${grouped(count)}`;
}

/** The values under the numbers of their columns, as many columns at a time as fit beside each other. */
function matrixLines(matrix: readonly Float32Array[], firstRow: number, columns: Range, terminal: Terminal): string[] {
  const texts = alignedTexts(matrix);
  const count = columns.end - columns.start;
  const cellWidth = Math.max(
    String(columns.end - 1).length,
    ...texts.map((row) => row.reduce((width, { length }) => Math.max(width, length), 0)),
  );
  const labelWidth = Math.max(3, String(firstRow + matrix.length - 1).length);
  const perLine = Math.max(1, Math.floor((terminal.width - labelWidth - 2) / (cellWidth + 2)));
  const lines: string[] = [];
  for (let begin = 0; begin < count && matrix.length > 0; begin += perLine) {
    const end = Math.min(begin + perLine, count);
    const titles = Array.from({ length: end - begin }, (_, i) => String(columns.start + begin + i).padStart(cellWidth));
    lines.push("", `  ${terminal.quiet(["row".padStart(labelWidth), ...titles].join("  "))}`);
    texts.forEach((row, i) => {
      const cells = row.slice(begin, end).map((text) => text.padStart(cellWidth));
      lines.push(`  ${terminal.quiet(String(firstRow + i).padStart(labelWidth))}  ${cells.join("  ")}`);
    });
  }
  return lines;
}

/** The values with as many decimals as the largest needs for four digits; very large or small ones with powers of ten. */
function alignedTexts(matrix: readonly Float32Array[]): string[][] {
  let largest = 0;
  for (const row of matrix) {
    for (const value of row) if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  }
  const magnitude = largest === 0 ? 0 : Math.floor(Math.log10(largest));
  const isPower = magnitude >= 7 || magnitude < -4;
  const isWhole = matrix.every((row) => row.every((value) => !Number.isFinite(value) || Number.isInteger(value)));
  const decimals = isWhole ? 0 : Math.min(8, Math.max(0, 3 - magnitude));
  const text = (value: number): string => {
    if (!Number.isFinite(value)) return float32Text(value);
    if (isPower) return value === 0 ? float32Text(value) : value.toExponential(3);
    return Object.is(value, -0) ? `-${(0).toFixed(decimals)}` : value.toFixed(decimals);
  };
  return matrix.map((row) => Array.from(row, text));
}

/** Tables for the terminal and for pages, and numbers with few digits. */

export interface Table {
  title: string;
  columns: string[];
  rows: string[][];
}

/** Aligns the first column left and the others right. */
export function printTable({ title, columns, rows }: Table): void {
  const lines = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  console.log(`\n${title}\n`);
  for (const line of lines) {
    const cells = line.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
    );
    console.log(`  ${cells.join("  ")}`);
  }
}

/** Three significant digits (all digits of larger numbers), without an exponent. */
export function digits(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A number of bytes that is a power of two: "256 KiB". */
export function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return `${bytes} ${units[unit]}`;
}

/** Shows what is being measured, if standard error is a terminal. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

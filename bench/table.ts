/** Tables for the terminal, at most 80 columns wide, and numbers with few digits. */

/** Prints rows under titles. Aligns the first column left and the others right. Shows undefined cells as "-". */
export function printTable(
  title: string,
  titles: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
): void {
  if (rows.length === 0) return;
  const lines = [titles, ...rows].map((row) => row.map((cell) => cell ?? "-"));
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
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

/** Bytes written in `seconds`, in GB/s. */
export function gigabytes(bytes: number, seconds: number | undefined): string | undefined {
  return seconds === undefined ? undefined : digits(bytes / seconds / 1e9);
}

/** How many times as long as `fast` `slow` took: "12.3x". */
export function times(slow: number | undefined, fast: number | undefined): string | undefined {
  return slow === undefined || fast === undefined ? undefined : `${digits(slow / fast)}x`;
}

export function duration(seconds: number | undefined): string | undefined {
  if (seconds === undefined) return undefined;
  if (seconds < 1e-6) return `${digits(seconds * 1e9)} ns`;
  if (seconds < 1e-3) return `${digits(seconds * 1e6)} us`;
  return seconds < 1 ? `${digits(seconds * 1e3)} ms` : `${digits(seconds)} s`;
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

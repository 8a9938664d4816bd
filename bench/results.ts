/** All measurements in one flat list, which tables, charts, JSON and the check of floors read. */
import { readFileSync } from "node:fs";
import { arch, cpus, platform, release, totalmem } from "node:os";
import { cpu } from "gguf-native";
import type { Timing } from "./measure";
import { digits, printTable, type Table } from "./table";

export interface Measurement extends Timing {
  /** The work: `dequantize`, `limit`, `open` ... */
  task: string;
  /** What it was done on: a tensor type, a file. */
  subject: string;
  /** Who did it: `native`, `typescript`, `libggml` ... */
  side: string;
  /** Bytes of output, or of the blocks of a product, if the task depends on it. */
  bytes?: number;
  /** Weights that were made, read or multiplied. */
  weights?: number;
  /** How many vectors a product multiplies with; 1 if not given. */
  vectors?: number;
  threads?: number;
  /** How many items one call handled, such as rows. */
  count?: number;
}

/** The fields that identify a measurement. */
export type Key = Omit<Measurement, keyof Timing>;

export interface Machine {
  processor: string;
  cores: number;
  memoryBytes: number;
  system: string;
  node: string;
  /** The kernels in use. */
  isa: string;
  threads: number;
}

/** What a measurement says in a unit. */
const UNITS = {
  "GB/s": ({ bytes = 0, best }: Measurement) => bytes / best / 1e9,
  "Gweights/s": ({ weights = 0, vectors = 1, best }: Measurement) => (weights * vectors) / best / 1e9,
  "GFLOP/s": ({ weights = 0, vectors = 1, best }: Measurement) => (2 * weights * vectors) / best / 1e9,
  "tokens/s": ({ best }: Measurement) => 1 / best,
  "ns per weight": ({ weights = 1, best }: Measurement) => (1e9 * best) / weights,
  ms: ({ best }: Measurement) => 1e3 * best,
  µs: ({ best }: Measurement) => 1e6 * best,
};
export type Unit = keyof typeof UNITS;

export class Results {
  date = new Date().toISOString();
  machine: Machine = describeMachine();
  measurements: Measurement[] = [];
  tables: Table[] = [];
  /** What could not be measured, and why. */
  missing: string[] = [];

  /** What another run wrote with `--json`. */
  static read(path: string): Results {
    return Object.assign(new Results(), JSON.parse(readFileSync(path, "utf8")) as Partial<Results>);
  }

  add(key: Key, timing: Timing): void {
    this.measurements.push({ ...key, ...timing });
  }

  /** Notes that something could not be measured, and prints each reason once. */
  miss(reason: string): void {
    if (this.missing.includes(reason)) return;
    this.missing.push(reason);
    console.log(`not measured: ${reason}`);
  }

  /** The fastest measurement with this key; undefined if there is none. */
  fastest(key: Partial<Key>): Measurement | undefined {
    return this.all(key).sort((a, b) => a.best - b.best)[0];
  }

  /** Its seconds. */
  best(key: Partial<Key>): number | undefined {
    return this.fastest(key)?.best;
  }

  /** The fastest measurement with this key in a unit, for a table. */
  speed(unit: Unit, key: Partial<Key>): string | undefined {
    const found = this.fastest(key);
    return found && digits(UNITS[unit](found));
  }

  /** How many times as fast as `slow` a side is, by seconds for the same work. */
  ratio(key: Partial<Key>, side: string, slow: string): number | undefined {
    const [fast, other] = [side, slow].map((its) => this.best({ ...key, side: its }));
    return fast === undefined || other === undefined ? undefined : other / fast;
  }

  /** All measurements whose fields equal those in `key`. */
  all(key: Partial<Key>): Measurement[] {
    const wanted = Object.entries(key);
    return this.measurements.filter((measurement) =>
      wanted.every(([name, value]) => measurement[name as keyof Key] === value),
    );
  }

  /** The subjects that were measured with this key. */
  subjects(key: Partial<Key>): string[] {
    return [...new Set(this.all(key).map(({ subject }) => subject))];
  }

  /** Prints a table, and keeps it for `--json`. */
  table(title: string, columns: readonly string[], rows: readonly (readonly (string | undefined)[])[]): void {
    if (rows.length === 0) return;
    const table = { title, columns: [...columns], rows: rows.map((row) => row.map((cell) => cell ?? "-")) };
    this.tables.push(table);
    printTable(table);
  }

  /**
   * A table with a row for each subject that was measured: the figure of each side in a unit, and for all but the first how
   * many times as fast the first is. `limits` are sides that depend on no subject: the first one's share of them. Sides that
   * were not measured are left out.
   */
  compare(
    title: string,
    key: Partial<Key>,
    unit: Unit,
    [first, ...others]: readonly string[],
    limits: Readonly<Record<string, Partial<Key>>> = {},
  ): void {
    const there = others.filter((side) => this.all({ ...key, side }).length > 0);
    const bounds = Object.entries(limits).flatMap(([name, limit]) => {
      const seconds = this.best(limit);
      return seconds === undefined ? [] : [{ name, seconds }];
    });
    const rows = this.subjects(key).map((subject) => {
      const of = (side: string) => ({ ...key, subject, side });
      const ours = this.best(of(first!));
      const ratio = (seconds: number | undefined) =>
        seconds === undefined || ours === undefined ? undefined : digits(seconds / ours);
      return [
        ...[subject, this.speed(unit, of(first!))],
        ...there.flatMap((side) => [this.speed(unit, of(side)), ratio(this.best(of(side)))]),
        ...bounds.map(({ seconds }) => ratio(seconds)),
      ];
    });
    const columns = ["", first!, ...there.flatMap((side) => [side, "×"]), ...bounds.map(({ name }) => name)];
    this.table(`${title}, ${unit}`, columns, rows);
  }
}

/** The figure of a measurement in a unit. */
export function figure(unit: Unit, measurement: Measurement): number {
  return UNITS[unit](measurement);
}

function describeMachine(): Machine {
  const { isa, threads } = cpu();
  const processors = cpus();
  return {
    processor: `${processors[0]?.model.trim() ?? arch()}${modelNumber()}`,
    cores: processors.length,
    memoryBytes: totalmem(),
    system: `${platform()} ${release()} ${arch()}`,
    node: process.version,
    isa,
    threads,
  };
}

/** Names of processors for servers do not say which generation they are of: Linux knows their numbers. */
function modelNumber(): string {
  if (platform() !== "linux" || arch() !== "x64") return "";
  const info = readFileSync("/proc/cpuinfo", "latin1");
  const number = (name: string) => new RegExp(`^${name}\\s*: (\\d+)$`, "m").exec(info)?.[1];
  return ` family ${number("cpu family")} model ${number("model")}`;
}

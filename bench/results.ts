/** All measurements in one flat list, which tables, charts, JSON and the check of floors read. */
import { arch, cpus, platform, release, totalmem } from "node:os";
import { cpu } from "gguf-native";
import type { Timing } from "./measure";

export interface Measurement extends Timing {
  /** The work: `dequantize`, `limit`, `open` ... */
  task: string;
  /** What it was done on: a tensor type, a file. */
  subject: string;
  /** Who did it: `native`, `typescript`, `libggml` ... */
  side: string;
  /** Bytes of output, or of the blocks of a product, if the task depends on it. */
  bytes?: number;
  /** Weights of the matrix that a product multiplies. */
  weights?: number;
  /** How many vectors a product multiplies with; 1 if not given. */
  vectors?: number;
  threads?: number;
  /** Where it ran, if not in Node alone: `Chromium`. */
  runtime?: string;
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

export class Results {
  readonly date = new Date().toISOString();
  readonly machine: Machine = describeMachine();
  readonly measurements: Measurement[] = [];
  /** What could not be measured, and why. */
  readonly missing: string[] = [];

  add(key: Key, timing: Timing): void {
    this.measurements.push({ ...key, ...timing });
  }

  /** Notes that something could not be measured, and prints each reason once. */
  miss(reason: string): void {
    if (this.missing.includes(reason)) return;
    this.missing.push(reason);
    console.log(`not measured: ${reason}`);
  }

  /** The fastest measurement with this key, in seconds; undefined if there is none. */
  best(key: Key): number | undefined {
    const times = this.all(key).map(({ best }) => best);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** All measurements whose fields equal those in `key`. */
  all(key: Partial<Key>): Measurement[] {
    const wanted = Object.entries(key);
    return this.measurements.filter((measurement) =>
      wanted.every(([name, value]) => measurement[name as keyof Key] === value),
    );
  }

  toJSON(): object {
    const { date, machine, missing, measurements } = this;
    return { format: 1, unit: "seconds", date, machine, missing, measurements };
  }
}

function describeMachine(): Machine {
  const { isa, threads } = cpu();
  const processors = cpus();
  return {
    processor: processors[0]?.model.trim() ?? arch(),
    cores: processors.length,
    memoryBytes: totalmem(),
    system: `${platform()} ${release()} ${arch()}`,
    node: process.version,
    isa,
    threads,
  };
}

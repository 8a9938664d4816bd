/** What was measured: one flat list, which tables, charts, JSON and the check against floors all read. */
import { arch, cpus, platform, release, totalmem } from "node:os";
import { cpu } from "gguf-native";
import type { Timing } from "./measure";

export interface Measurement extends Timing {
  /** What was done: `dequantize`, `limit`, `open` ... */
  task: string;
  /** On what: a tensor type, a file. */
  subject: string;
  /** By whom: `native`, `typescript`, `libggml` ... */
  side: string;
  /** Bytes of output, where that is what the task is about. */
  bytes?: number;
  threads?: number;
  /** How often the work was done at once, such as rows of one call. */
  count?: number;
}

/** What tells measurements apart. */
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

  /** Says so once where something is not there. */
  miss(reason: string): void {
    if (this.missing.includes(reason)) return;
    this.missing.push(reason);
    console.log(`not measured: ${reason}`);
  }

  /** The fastest measurement of this kind, in seconds; undefined where there is none. */
  best(key: Key): number | undefined {
    const times = this.all(key).map(({ best }) => best);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Every measurement that agrees with what `key` names. */
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

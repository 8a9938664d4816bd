/** Numbers about the values of whole tensors. */
import type { OpenedModel } from "../arguments/open-model";
import type { Terminal } from "../output/terminal";
import { emptyDistribution, mergeDistribution } from "./distribution";
import { valueTasks } from "./pieces";
import { runTasks } from "./run-tasks";
import { emptyScan, finiteCount, meanOf, mergeScan, type Scan } from "./scan";

/** What is needed to know of a tensor. */
type TensorSize = { readonly name: string; readonly elementCount: number };

/** Scans tensors; the results by name. */
export async function scanTensors(
  terminal: Terminal,
  model: OpenedModel,
  tensors: readonly TensorSize[],
): Promise<Map<string, Scan>> {
  const scans = new Map(tensors.map(({ name }) => [name, emptyScan()]));
  const tasks = valueTasks(tensors);
  const results = await runTasks(terminal, "scan", undefined, [model], tasks);
  tasks.forEach(({ name }, i) => {
    mergeScan(scans.get(name) as Scan, results[i] as Scan);
  });
  return scans;
}

/** A tensor's histogram and spread. */
export interface TensorDistribution {
  /** Values in each bin. */
  counts: number[];
  /** The standard deviation; NaN where no value is finite. */
  std: number;
}

/** The distributions of tensors, by name; `scans` is what {@link scanTensors} found. */
export async function distributionsOf(
  terminal: Terminal,
  model: OpenedModel,
  tensors: readonly TensorSize[],
  scans: ReadonlyMap<string, Scan>,
  bins: number,
): Promise<Map<string, TensorDistribution>> {
  const ranges = new Map(
    Array.from(scans, ([name, scan]) => [name, { min: scan.min, max: scan.max, mean: meanOf(scan) }]),
  );
  const totals = new Map(tensors.map(({ name }) => [name, emptyDistribution(bins)]));
  const tasks = valueTasks(tensors);
  const results = await runTasks(terminal, "distribution", { bins, ranges }, [model], tasks);
  tasks.forEach(({ name }, i) => {
    const [total, part] = [totals.get(name), results[i]];
    if (total !== undefined && part !== undefined) mergeDistribution(total, part);
  });
  return new Map(
    Array.from(totals, ([name, { counts, squares }]) => {
      const std = Math.sqrt(squares / finiteCount(scans.get(name) as Scan));
      return [name, { counts, std }];
    }),
  );
}

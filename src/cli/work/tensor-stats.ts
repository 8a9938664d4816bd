/** What the values of whole tensors are like. */
import type { AsyncOptions, GgufModelTensor, GgufTensor, TensorStats } from "../../index";
import type { OpenedModel } from "../arguments/open-model";
import type { Terminal } from "../output/terminal";
import { lookAtValues, totalCost, type ValueWork } from "./look-at-values";

/** The statistics of tensors of one model, in their order, under a progress line; with `bins`, histograms too. */
export async function tensorStats(
  terminal: Terminal,
  { path }: OpenedModel,
  tensors: readonly GgufModelTensor[],
  bins?: number,
): Promise<TensorStats[]> {
  const work: ValueWork<GgufModelTensor, TensorStats> = {
    tensor: (tensor) => tensor,
    cost: ({ byteLength }) => byteLength,
    now: (tensor) => (tensor as GgufTensor).statsSync({ bins, threads: 1 }),
    later: (tensor, options: AsyncOptions) => tensor.stats({ bins, ...options }),
  };
  const found = new Array<TensorStats>(tensors.length);
  await terminal.withProgress(path, totalCost(tensors, work), (progress) =>
    lookAtValues(tensors, work, progress, (stats, i) => {
      found[i] = stats;
    }),
  );
  return found;
}

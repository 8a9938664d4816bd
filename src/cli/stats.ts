/** What a scan over the values of a tensor finds. */
import type { GgufTensor } from "../index";
import { chunks } from "./chunks";

export interface Stats {
  elements: number;
  nan: number;
  infinite: number;
  /** Of the finite values; infinite where there is none. */
  min: number;
  max: number;
  mean: number;
}

export async function scan(tensor: GgufTensor): Promise<Stats> {
  const stats: Stats = { elements: 0, nan: 0, infinite: 0, min: Infinity, max: -Infinity, mean: 0 };
  let sum = 0;
  for await (const values of chunks(tensor, "f32")) {
    stats.elements += values.length;
    let { min, max } = stats;
    for (let i = 0; i < values.length; i++) {
      const value = values[i] as number;
      const difference = value - value; // 0 where the value is finite
      if (difference !== 0) {
        if (Number.isNaN(value)) stats.nan++;
        else stats.infinite++;
        continue;
      }
      if (value < min) min = value;
      if (value > max) max = value;
      sum += value;
    }
    stats.min = min;
    stats.max = max;
  }
  stats.mean = sum / (stats.elements - stats.nan - stats.infinite);
  return stats;
}

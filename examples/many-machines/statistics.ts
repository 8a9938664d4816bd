/** Statistics of a range of weights, which can be added up: those of two ranges give those of both. */
import type { GgufTensor, RemoteGgufTensor } from "gguf-native";

export interface Statistics {
  count: number;
  nan: number;
  infinite: number;
  zeros: number;
  /** Of the finite numbers, as is what follows. Infinity and -Infinity where there are none. */
  min: number;
  max: number;
  mean: number;
  /** The sum of the squared distances from the mean. */
  squares: number;
}

export const NOTHING: Readonly<Statistics> = {
  ...{ count: 0, nan: 0, infinite: 0, zeros: 0, mean: 0, squares: 0 },
  min: Number.POSITIVE_INFINITY,
  max: Number.NEGATIVE_INFINITY,
};

export const finiteCount = ({ count, nan, infinite }: Statistics): number => count - nan - infinite;

export const deviation = (of: Statistics): number => Math.sqrt(of.squares / finiteCount(of));

/** Looks at the weights in the cache and keeps none of them; on a server, only this range is fetched. */
export async function measure(
  tensor: GgufTensor | RemoteGgufTensor,
  range: { start: number; end: number },
): Promise<Statistics> {
  const { count, finite, nan, infinite, zeros, min, max, mean, std } = await tensor.stats(range);
  if (finite === 0) return { ...NOTHING, count, nan, infinite };
  return { count, nan, infinite, zeros, min, max, mean, squares: std ** 2 * finite };
}

/** By the formula of Chan, Golub and LeVeque. Sums depend on their order, so always add up in the same one. */
export function added(a: Statistics, b: Statistics): Statistics {
  const [left, right] = [finiteCount(a), finiteCount(b)];
  const share = left + right === 0 ? 0 : right / (left + right);
  const distance = b.mean - a.mean;
  return {
    count: a.count + b.count,
    nan: a.nan + b.nan,
    infinite: a.infinite + b.infinite,
    zeros: a.zeros + b.zeros,
    min: Math.min(a.min, b.min),
    max: Math.max(a.max, b.max),
    mean: a.mean + distance * share,
    squares: a.squares + b.squares + distance ** 2 * left * share,
  };
}

const FIELDS = Object.keys(NOTHING) as (keyof Statistics)[];

/** As text that keeps every bit: JSON has neither infinities nor -0. */
export function encode(statistics: Statistics): string {
  const numbers = Float64Array.from(FIELDS, (field) => statistics[field]);
  return Buffer.from(numbers.buffer).toString("base64");
}

export function decode(text: string): Statistics {
  const numbers = new Float64Array(new Uint8Array(Buffer.from(text, "base64")).buffer);
  return Object.fromEntries(FIELDS.map((field, i) => [field, numbers[i]])) as unknown as Statistics;
}

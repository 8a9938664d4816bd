/** Numbers that are hard to encode, and weights of importance: the same on every machine. */
import { type GgmlType, ggmlTypes } from "gguf-native";
import { Random } from "./random";

export interface QuantizeCase {
  /** Such as "gaussian, wild importance". */
  name: string;
  numbers: Float32Array;
  columns: number;
  importance: Float32Array | undefined;
}

// Everything is made with operations that round in the same way everywhere: no logarithms, no cosines.

/** About gaussian: mean 0, standard deviation 1. */
function bell(random: Random): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random.unit();
  return sum;
}

const sign = (random: Random): number => (random.below(2) === 0 ? 1 : -1);
const SUBNORMAL = 2 ** -149;

/** Makes number i of its block, which is the block'th. */
type Kind = (random: Random, i: number, block: number) => number;

const KINDS: Readonly<Record<string, Kind>> = {
  gaussian: (random) => bell(random) * 0.02,
  outliers: (random) => bell(random) * (random.below(40) === 0 ? 1 : 0.01),
  zeros: () => 0,
  "negative zeros": (random) => (random.below(3) === 0 ? 0 : -0),
  constant: (_, __, block) => [1, -3.5, 0.1, -1e-3][block % 4] as number,
  "one value of each block": (random, i, block) => (i % 7 === 0 ? sign(random) : 1) * 0.37 * (1 + block),
  tiny: (random) => bell(random) * 1e-30,
  huge: (random) => bell(random) * 1e4,
  "beyond binary16": (random) => bell(random) * 1e7,
  subnormal: (random) => sign(random) * random.below(2 ** 20) * SUBNORMAL,
  ties: (random) => (random.below(63) - 31) / 2,
  sorted: (_, i) => (i - 100) / 128,
  alternating: (_, i) => (i % 2 === 0 ? 1 : -1) * (1 + (i % 5)),
  "negative only": (random) => -random.unit(),
  "positive only": (random) => random.unit() + 0.5,
  "half a block of zeros": (random, i) => (i % 32 < 16 ? 0 : bell(random)),
  "one number": (random, i) => (i === random.below(256) ? sign(random) * 0.5 : 0),
  "like a model's": (random, i, block) => bell(random) * 0.015 * (1 + ((block * 7) % 5)) * (i % 64 === 11 ? 6 : 1),
  "powers of two": (random) => sign(random) * 2 ** (random.below(20) - 14),
  "squares beyond binary32": (random) => bell(random) * 1e25,
};

const IMPORTANCE: Readonly<Record<string, ((random: Random) => number) | undefined>> = {
  no: undefined,
  uniform: () => 1,
  wild: (random) => random.unit() * 2 ** (random.below(24) - 12),
  zero: () => 0,
  "half of it zero": (random) => (random.below(2) === 0 ? 0 : random.unit() * 30),
};

/** ggml ends the process where its search of a codebook has no finite sum. */
const skips = (type: GgmlType, kind: string): boolean => kind === "squares beyond binary32" && /^IQ[123]_/.test(type);

function fill(length: number, make: (i: number) => number): Float32Array {
  return Float32Array.from({ length }, (_, i) => make(i));
}

/** Every kind of numbers with every kind of importance that a type can be encoded with. */
export function* quantizeCases(type: GgmlType, needsImportance: boolean): Generator<QuantizeCase> {
  const { blockSize } = ggmlTypes[type];
  const columns = 768;
  for (const [weights, weight] of Object.entries(IMPORTANCE)) {
    if (needsImportance && weight === undefined) continue;
    const random = new Random(7);
    const importance = weight && fill(columns, () => weight(random));
    for (const [kind, make] of Object.entries(KINDS)) {
      if (skips(type, kind)) continue;
      const numbers = fill(2 * columns, (i) => make(random, i % 256, Math.floor(i / 256)));
      yield { name: `${kind}, ${weights} importance`, numbers, columns, importance };
    }
    // Numbers of blocks that fill no vector; many rows; a long row.
    for (const [rows, blocks] of [
      [3, 5],
      [1, 1],
      [17, 1],
      [1, 37],
    ] as const) {
      const short = blocks * Math.max(blockSize, 32);
      const numbers = fill(rows * short, () => bell(random) * 0.05);
      const its = weight && fill(short, () => weight(random));
      yield { name: `${rows} x ${short}, ${weights} importance`, numbers, columns: short, importance: its };
    }
  }
}

/** examples/network/simd, to the bit: against the same arithmetic in JavaScript, one number at a time. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Floats, Workspace } from "../../examples/network/workspace";
import { Random } from "../support/random";

const f = Math.fround;
const random = new Random(4);
/** Most are no multiple of 4. */
const LENGTHS = [1, 2, 3, 4, 5, 7, 8, 13, 64, 67];

const numbers = (length: number, scale = 3): number[] =>
  Array.from({ length }, () => f(scale * (random.unit() - 0.5)));

/** e^x, in the steps that the module documents. */
function exp(x: number): number {
  const near = x > 88 ? 88 : x < -87 ? -87 : x;
  const rounder = 12583039;
  const n = f(f(f(near * f(Math.LOG2E)) + rounder) - rounder);
  const r = f(f(near - f(n * 0.693359375)) + f(n * f(2.1219444e-4)));
  const square = f(r * r);
  const a = f(f(f(0.1666652) * r) + f(0.49999994));
  const b = f(f(f(0.008368899) * r) + f(0.041668404));
  const p = f(f(f(f(f(0.0013814222) * square) + b) * square) + a);
  return f(f(f(f(p * square) + r) + 1) * 2 ** n);
}

/** A sum in the order of the module: four sums, of which the first and the third are added first. */
function sumOf(values: readonly number[]): number {
  const sums = [0, 0, 0, 0];
  for (const [i, value] of values.entries()) sums[i % 4]! += value;
  return sums[0]! + sums[2]! + (sums[1]! + sums[3]!);
}

/** Memory in which arrays have numbers around them, which must stay. */
class Guarded {
  readonly #workspace = new Workspace();
  readonly #all: { floats: Floats; length: number }[] = [];
  readonly simd = this.#workspace.simd;

  make(values: readonly number[]): { address: number; read: () => number[] } {
    const around = Array<number>(4).fill(12345);
    const floats = this.#workspace.copyOf(Float32Array.from([...around, ...values, ...around]));
    const { length } = values;
    this.#all.push({ floats, length });
    return { address: floats.address + 16, read: () => [...floats.array.subarray(4, 4 + length)] };
  }

  check(): void {
    for (const { floats, length } of this.#all) {
      const { array } = floats;
      assert.ok([...array.subarray(0, 4), ...array.subarray(4 + length)].every((x) => x === 12345));
    }
  }
}

/** Runs a test with memory of its own for each length. */
function forLengths(name: string, run: (memory: Guarded, length: number) => void): void {
  test(name, () => {
    for (const length of LENGTHS) {
      const memory = new Guarded();
      run(memory, length);
      memory.check();
    }
  });
}

/** The rows of `width` numbers of an array. */
const rowsOf = (values: readonly number[], width: number): number[][] =>
  Array.from({ length: values.length / width }, (_, i) => values.slice(i * width, (i + 1) * width));

describe("e^x", () => {
  test("has the bits of its steps, and NaN stays NaN, whatever its bits are", () => {
    const workspace = new Workspace();
    const floats = workspace.floats("x", 1);
    const find = (x: number): number => {
      floats.array[0] = x;
      return workspace.simd.sumOfPowers(floats.address, 1, 0);
    };
    for (const x of [0, -0, 1, -1, 87.875, -86.875, 88, -87, 1e30, -1e30, Number.POSITIVE_INFINITY])
      assert.equal(find(x), exp(x), `${x}`);
    assert.equal(find(Number.NEGATIVE_INFINITY), exp(-87));
    for (let i = 0; i < 100_000; i++) {
      const x = f(175 * random.unit() - 87);
      assert.equal(find(x), exp(x), `${x}`);
    }
    for (const bits of [0x7fc00000, 0x7fc00001, 0x7f800001, 0xffffffff, 0x7fc000ff]) {
      new Uint32Array(workspace.buffer, floats.address, 1)[0] = bits;
      assert.ok(Number.isNaN(workspace.simd.sumOfPowers(floats.address, 1, 0)), bits.toString(16));
    }
  });

  test("has a relative error of at most 8.2e-8: for all floats from -1 to -1/2, and between its limits", () => {
    const workspace = new Workspace();
    const error = (found: number, x: number): number => Math.abs(found / Math.exp(x) - 1);
    let greatest = 0;
    const count = 2 ** 16;
    // The first number is the greatest: powers are those of the numbers themselves.
    const floats = workspace.floats("x", count + 1);
    const factor = workspace.floats("factor", 1);
    for (let bits = 0x3f000000; bits < 0x3f800000; bits += count) {
      const x = floats.array;
      const xBits = new Uint32Array(workspace.buffer, floats.address, count + 1);
      for (let i = 1; i <= count; i++) xBits[i] = (bits + i) | 0x80000000;
      x[0] = 0;
      const arguments_ = x.slice();
      workspace.simd.softmax(
        floats.address,
        1,
        count + 1,
        1,
        count + 1,
        count + 1,
        floats.address,
        count + 1,
        factor.address,
      );
      for (let i = 1; i <= count; i++) greatest = Math.max(greatest, error(x[i]!, arguments_[i]!));
    }
    assert.ok(greatest > 4e-8, "something was compared");
    const single = workspace.floats("one", 1);
    for (let x = -87; x < 88; x += 1 / 8191) {
      single.array[0] = x;
      const rounded = single.array[0]!;
      greatest = Math.max(greatest, error(workspace.simd.sumOfPowers(single.address, 1, 0), rounded));
    }
    assert.ok(greatest < 8.2e-8, `${greatest}`);
  });
});

describe("norms", () => {
  forLengths("rmsNorm, in place and not", (memory, width) => {
    const x = numbers(3 * width);
    const weight = numbers(width);
    const expected = rowsOf(x, width).flatMap((row) => {
      const scale = f(1 / Math.sqrt(sumOf(row.map((value) => value * value)) / width + 1e-5));
      return row.map((value, i) => f(f(value * scale) * weight[i]!));
    });
    const [from, to, weights] = [memory.make(x), memory.make(x.map(() => 0)), memory.make(weight)];
    memory.simd.rmsNorm(from.address, 3, width, weights.address, 1e-5, to.address);
    assert.deepEqual([to.read(), from.read()], [expected, x]);
    memory.simd.rmsNorm(from.address, 3, width, weights.address, 1e-5, from.address);
    assert.deepEqual(from.read(), expected);
  });

  forLengths("addAndNorm", (memory, width) => {
    const [x, y] = [numbers(3 * width), numbers(3 * width)];
    const [bias, weight, shift] = [numbers(width), numbers(width), numbers(width)];
    const expected = rowsOf(
      x.map((value, i) => f(f(value + y[i]!) + bias[i % width]!)),
      width,
    ).flatMap((row) => {
      const mean = sumOf(row) / width;
      const variance = sumOf(row.map((value) => value * value)) / width - mean * mean;
      const scale = f(1 / Math.sqrt(Math.max(0, variance) + 1e-5));
      return row.map((value, i) => f(f(f(f(value - f(mean)) * scale) * weight[i]!) + shift[i]!));
    });
    const [into, added] = [memory.make(x), memory.make(y)];
    const [biases, weights, shifts] = [memory.make(bias), memory.make(weight), memory.make(shift)];
    const { addAndNorm } = memory.simd;
    addAndNorm(into.address, 3, width, added.address, biases.address, weights.address, shifts.address, 1e-5);
    assert.deepEqual(into.read(), expected);
  });
});

describe("activations", () => {
  const silu = (x: number): number => f(x / f(1 + exp(-x)));
  const gelu = (x: number): number => {
    const cubic = f(1 + f(f(0.044715) * f(x * x)));
    return f(x / f(1 + exp(f(f(f(-1.5957691) * x) * cubic))));
  };
  const erfGelu = (x: number): number => {
    const size = Math.abs(x);
    const t = f(1 / f(1 + f(f(0.34) * size)));
    const coefficients = [-0.10640291, 0.3309747, -0.040149868, 0.18624151, 0.12933424].map(f);
    const p = coefficients.reduce((sum, coefficient) => f(f(sum * t) + coefficient));
    const less = f(size * f(f(p * t) * exp(f(f(size * size) * -0.5))));
    return f((x < 0 ? 0 : x) - less);
  };

  forLengths("gates", (memory, length) => {
    const extremes = [Number.NaN, 1e30, -1e30, 0, -0];
    const gate = numbers(length, 40).map((x, i) => (length === 13 ? (extremes[i] ?? x) : x));
    const up = numbers(length);
    for (const [run, activation] of [
      [memory.simd.gatedBySilu, silu],
      [memory.simd.gatedByGelu, gelu],
    ] as const) {
      const [gates, ups] = [memory.make(gate), memory.make(up)];
      run(gates.address, ups.address, length);
      assert.deepEqual(
        gates.read(),
        gate.map((x, i) => f(activation(f(x)) * up[i]!)),
      );
    }
  });

  forLengths("GELU with the error function, after a bias", (memory, width) => {
    const [x, bias] = [numbers(3 * width, 12), numbers(width)];
    const [into, biases] = [memory.make(x), memory.make(bias)];
    memory.simd.addAndGelu(into.address, 3, width, biases.address);
    assert.deepEqual(
      into.read(),
      x.map((value, i) => erfGelu(f(value + bias[i % width]!))),
    );
  });
});

describe("attention", () => {
  forLengths("softmax of what each token sees", (memory, columns) => {
    for (const [group, window] of [
      [1, 2 ** 31 - 1],
      [2, 3],
    ] as const) {
      const tokens = Math.min(3, columns);
      const [rows, seen, width] = [tokens * group, columns - tokens + 1, columns + 3];
      const scores = numbers(rows * columns, 300);
      const powers = memory.make(Array<number>(rows * width).fill(7));
      const factors = memory.make(Array<number>(rows).fill(7));
      const { simd } = memory;
      const from = memory.make(scores);
      simd.softmax(from.address, rows, columns, group, seen, window, powers.address, width, factors.address);
      const expected = rowsOf(scores, columns).map((row, r) => {
        const end = seen + Math.floor(r / group);
        const begin = Math.max(0, end - window);
        const shown = row.slice(begin, end);
        const found = shown.map((score) => exp(f(score - Math.max(...shown))));
        const before = Array<number>(begin).fill(0);
        return {
          powers: [...before, ...found, ...Array<number>(width - end).fill(0)],
          factor: f(1 / sumOf(found)),
        };
      });
      assert.deepEqual(
        powers.read(),
        expected.flatMap((row) => row.powers),
      );
      assert.deepEqual(
        factors.read(),
        expected.map(({ factor }) => factor),
      );
      assert.deepEqual(from.read(), scores);
      // In place, where the rows are as long.
      simd.softmax(from.address, rows, columns, group, seen, window, from.address, columns, factors.address);
      assert.deepEqual(
        from.read(),
        expected.flatMap((row) => row.powers.slice(0, columns)),
      );
    }
  });

  forLengths("the greatest of numbers, and their sum of powers", (memory, length) => {
    const x = numbers(length, 50).map((value, i) => (i === 5 ? Number.NaN : value));
    const greatest = Math.max(...x.filter((value) => !Number.isNaN(value)));
    const from = memory.make(x);
    assert.equal(memory.simd.greatestOf(from.address, length), greatest);
    const finite = x.map((value) => (Number.isNaN(value) ? -9 : value));
    const sum = memory.simd.sumOfPowers(memory.make(finite).address, length, greatest);
    assert.equal(sum, sumOf(finite.map((value) => exp(f(value - greatest)))));
  });

  for (const adjacent of [false, true]) {
    forLengths(`rotations of ${adjacent ? "adjacent numbers" : "halves"}`, (memory, pairs) => {
      const [count, heads, width] = [2, 3, 2 * pairs + 1];
      const x = numbers(count * heads * width);
      const rotations = numbers(count * 2 * pairs);
      const expected = rowsOf(x, width).flatMap((head, h) => {
        const result = [...head];
        const first = Math.floor(h / heads) * 2 * pairs;
        for (let pair = 0; pair < pairs; pair++) {
          const [i, j] = adjacent ? [2 * pair, 2 * pair + 1] : [pair, pair + pairs];
          const [cos, sin] = [rotations[first + pair]!, rotations[first + pairs + pair]!];
          result[i] = f(f(head[i]! * cos) - f(head[j]! * sin));
          result[j] = f(f(head[i]! * sin) + f(head[j]! * cos));
        }
        return result;
      });
      const [into, table] = [memory.make(x), memory.make(rotations)];
      memory.simd.rope(into.address, count, heads, width, pairs, adjacent, table.address);
      assert.deepEqual(into.read(), expected);
    });
  }

  forLengths("rows put where they belong", (memory, width) => {
    const [rows, group] = [6, 2];
    const [x, factors] = [numbers(rows * width), numbers(rows)];
    const step = 3 * width;
    const to = memory.make(Array<number>(3 * step).fill(7));
    const [from, scales] = [memory.make(x), memory.make(factors)];
    memory.simd.spread(from.address, rows, width, scales.address, to.address, group, 4 * step);
    const expected = rowsOf(x, 2 * width).flatMap((pair, i) => [
      ...pair.map((value, j) => f(value * factors[2 * i + Math.floor(j / width)]!)),
      ...Array<number>(width).fill(7),
    ]);
    assert.deepEqual(to.read(), expected);
  });
});

describe("copies", () => {
  forLengths("add and scale", (memory, width) => {
    const [x, y] = [numbers(2 * width), numbers(width)];
    const [into, added] = [memory.make(x), memory.make(y)];
    memory.simd.add(into.address, 2, width, added.address);
    const sums = x.map((value, i) => f(value + y[i % width]!));
    assert.deepEqual(into.read(), sums);
    memory.simd.scale(into.address, 2 * width, 0.3);
    assert.deepEqual(
      into.read(),
      sums.map((value) => f(value * f(0.3))),
    );
  });

  forLengths("runs", (memory, length) => {
    const x = numbers(3 * (length + 2));
    const from = memory.make(x);
    const to = memory.make(Array<number>(3 * (length + 1)).fill(7));
    memory.simd.copyRuns(from.address, 4 * (length + 2), to.address, 4 * (length + 1), length, 3, 0.5);
    assert.deepEqual(
      to.read(),
      rowsOf(x, length + 2).flatMap((row) => [...row.slice(0, length).map((value) => value / 2), 7]),
    );
  });

  forLengths("columns", (memory, width) => {
    for (const count of LENGTHS) {
      const x = numbers(count * (width + 1));
      const from = memory.make(x);
      const to = memory.make(Array<number>(width * (count + 2)).fill(7));
      const steps = [4 * (width + 1), 4 * (count + 2)] as const;
      memory.simd.transpose(from.address, steps[0], count, width, to.address, steps[1]);
      const rows = rowsOf(x, width + 1);
      const expected = Array.from({ length: width }, (_, i) => [...rows.map((row) => row[i]!), 7, 7]);
      assert.deepEqual(to.read(), expected.flat());
    }
  });
});

describe("a workspace", () => {
  test("keeps its numbers when it grows", () => {
    const workspace = new Workspace();
    const kept = workspace.copyOf(Float32Array.of(1, 2, 3));
    const before = kept.array;
    const large = workspace.floats("large", 100_000);
    large.array.fill(5);
    assert.equal(before.length, 0);
    assert.deepEqual(kept.array, Float32Array.of(1, 2, 3));
    assert.equal(kept.array, kept.array);
  });

  test("can be used after it was asked for more than there can be", () => {
    const workspace = new Workspace();
    assert.throws(() => workspace.floats("too many", 2 ** 30), RangeError);
    const some = workspace.floats("some", 100_000);
    some.array.fill(5);
    assert.equal(workspace.simd.greatestOf(some.address, some.length), 5);
  });

  test("gives the same memory for the same name, as long as that is enough", () => {
    const workspace = new Workspace();
    const first = workspace.floats("x", 1000);
    const other = workspace.floats("y", 1000);
    assert.notEqual(other.address, first.address);
    assert.equal(workspace.floats("x", 1000), first);
    const less = workspace.floats("x", 10);
    assert.deepEqual([less.address, less.array.length], [first.address, 10]);
    assert.equal(workspace.floats("x", 1000).address, first.address);
    const more = workspace.floats("x", 1001);
    assert.notEqual(more.address, first.address);
    assert.equal(workspace.floats("x", 2000).address, more.address);
    assert.deepEqual(workspace.zeros("x", 5).array, new Float32Array(5));
    assert.deepEqual(other.part(2, 3).bytes.byteOffset, other.address + 8);
  });
});

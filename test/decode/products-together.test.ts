/** Several matrices with the same vectors: the bits of one after the other. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgmlType, GgufTensor, ggmlTypes, type MatrixRows, matmulAllSync, openRemote, parse } from "gguf-native";
import { gaussianBlocks } from "../support/blocks";
import { firstDifference } from "../support/compare";
import { writeGguf } from "../support/gguf-writer";
import { Random } from "../support/random";
import { rangesOf, serve } from "../support/range-server";

const random = new Random(31);
const COLUMNS = 512;
const SHAPES: readonly [GgmlType, ...number[]][] = [
  ["Q4_K", COLUMNS, 700],
  ["Q4_K", COLUMNS, 40, 6], // six experts
  ["Q6_K", COLUMNS, 300],
  ["F32", COLUMNS, 33],
  ["Q8_0", 64, 8], // of another length
];
const model = writeGguf({
  tensors: SHAPES.map(([type, ...shape], i) => {
    const count = shape.reduce((all, dim) => all * dim);
    const bytes = gaussianBlocks(type, count / ggmlTypes[type].blockSize, random);
    return { name: `m${i}`, type: ggmlTypes[type].id, shape, bytes };
  }),
});
const file = parse(model);
const [a, b, c, d, e] = SHAPES.map((_, i) => file.tensor(`m${i}`)) as [GgufTensor, ...GgufTensor[]] &
  [GgufTensor, GgufTensor, GgufTensor, GgufTensor, GgufTensor];
const bias = Float32Array.from({ length: 40 }, () => random.gaussian());
const rows: (GgufTensor | MatrixRows)[] = [
  a,
  { tensor: b, start: 200, end: 240 },
  { tensor: b, start: 0, end: 40, factor: 0.3, bias },
  c,
  d,
  { tensor: a, start: 5, end: 5 },
  { tensor: a, start: 699 },
];

const same = (found: Float32Array, wanted: Float32Array, name?: string): void =>
  assert.equal(firstDifference(found, wanted), -1, name);

function oneByOne(x: Float32Array, activations: "f32" | "int8"): Float32Array[] {
  return rows.map((each) => {
    const { tensor, ...options } = each instanceof GgufTensor ? { tensor: each } : each;
    return tensor.matmulSync(x, { ...options, activations, threads: 1 });
  });
}

for (const activations of ["f32", "int8"] as const) {
  test(`${activations}: the bits of matmulSync`, () => {
    for (const n of [0, 1, 2, 9]) {
      const x = Float32Array.from({ length: n * COLUMNS }, () => random.gaussian());
      const wanted = oneByOne(x, activations);
      for (const threads of [1, 2, 64, undefined]) {
        const found = matmulAllSync(rows, x, { activations, threads });
        assert.equal(found.length, rows.length);
        for (const [i, products] of wanted.entries()) same(found[i]!, products, `${n} vectors, matrix ${i}`);
      }
      // All of what is written lies over the vectors.
      const memory = new Float32Array(Math.max(x.length, ...[n * 2000]));
      memory.set(x);
      let at = 0;
      const outs = wanted.map(({ length }) => {
        at += length;
        return memory.subarray(at - length, at);
      });
      const found = matmulAllSync(rows, memory.subarray(0, x.length), { activations, outs });
      for (const [i, products] of wanted.entries()) {
        assert.equal(found[i], outs[i]);
        same(outs[i]!, products, `over the vectors, matrix ${i}`);
      }
    }
  });
}

test("a bias that another matrix's products are written over", () => {
  const x = Float32Array.from({ length: COLUMNS }, () => random.gaussian());
  const [first, second] = [
    { tensor: b, start: 0, end: 40, bias },
    { tensor: b, start: 40, end: 80 },
  ];
  const outs = [new Float32Array(40), bias.slice()];
  const found = matmulAllSync([{ ...first, bias: outs[1] }, second], x, { outs });
  for (const [i, wanted] of matmulAllSync([first, second], x).entries()) same(found[i]!, wanted, `matrix ${i}`);
});

test("none at all", () => {
  assert.deepEqual(matmulAllSync([], new Float32Array(COLUMNS)), []);
});

describe("wrong arguments: nothing is written", () => {
  const x = Float32Array.from({ length: COLUMNS }, () => random.gaussian());
  const outs = [new Float32Array(700), new Float32Array(300)];
  const all = new Float32Array(1000);
  const wrong: [string, string, unknown, unknown?, object?][] = [
    ["no list", "ERR_INVALID_ARG_TYPE", a],
    ["no tensor", "ERR_INVALID_ARG_TYPE", [a, 5]],
    ["no tensor in an object", "ERR_INVALID_ARG_TYPE", [a, { start: 1 }]],
    ["an option of one that does not exist", "ERR_INVALID_ARG_VALUE", [a, { tensor: b, from: 1 }]],
    ["rows that do not exist", "ERR_GGUF_RANGE", [a, { tensor: b, start: 10, end: 241 }]],
    ["another length of rows", "ERR_GGUF_RANGE", [a, e], x.subarray(0, 500)],
    ["x of another type", "ERR_INVALID_ARG_TYPE", [a, c], [...x]],
    ["too few outs", "ERR_GGUF_RANGE", [a, c], x, { outs: outs.slice(1) }],
    ["an out of another length", "ERR_GGUF_RANGE", [a, c], x, { outs: [outs[0], outs[0]] }],
    ["an out of another type", "ERR_INVALID_ARG_TYPE", [a, c], x, { outs: [outs[0], []] }],
    ["outs that are no list", "ERR_INVALID_ARG_TYPE", [a, c], x, { outs: 5 }],
    ["outs that overlap", "ERR_GGUF_RANGE", [a, c], x, { outs: [all.subarray(300), all.subarray(1, 301)] }],
    ["the same out twice", "ERR_GGUF_RANGE", [c, c], x, { outs: [outs[1], outs[1]] }],
    ["no threads", "ERR_GGUF_RANGE", [a, c], x, { threads: 0 }],
    ["activations of another name", "ERR_INVALID_ARG_VALUE", [a, c], x, { activations: "int4" }],
  ];
  for (const [name, code, list, vectors, options] of wrong) {
    test(name, () => {
      assert.throws(() => matmulAllSync(list as never, (vectors ?? x) as never, options), { code });
      for (const out of [...outs, all]) assert.ok(out.every((number) => number === 0));
    });
  }
  test("a tensor of a server, and one of a file that is closed", async () => {
    const remote = await openRemote((await serve(rangesOf(model))).url);
    assert.throws(() => matmulAllSync([remote.tensor("m0") as never], x), { code: "ERR_INVALID_ARG_TYPE" });
    const closed = parse(model);
    const tensor = closed.tensor("m0");
    closed.close();
    assert.throws(() => matmulAllSync([a, tensor], x), { code: "ERR_GGUF_CLOSED" });
  });
});

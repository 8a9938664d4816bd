/** Models of safetensors: wherever they are, with the numbers that are in them. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { GgufWriter, openSafetensors, openSync, type SafetensorsFile } from "gguf-native";
import { folder, run } from "../support/cli";
import { answerRange, serve } from "../support/range-server";
import { float4, float8, safetensorsOf } from "../support/safetensors-files";

const bytesOf = (array: ArrayBufferView): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

const all = Uint8Array.from({ length: 256 }, (_, i) => i);
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => (i * 37) % 251);

/** Type, bytes, and the numbers that they are. */
const CASES: readonly (readonly [dtype: string, bytes: Uint8Array, expected: number[]])[] = [
  ["F64", bytesOf(Float64Array.of(1.5, -2, 1e300, 0)), [1.5, -2, Infinity, 0]],
  ["F32", bytesOf(Float32Array.of(1.5, -2, NaN, -0)), [1.5, -2, NaN, -0]],
  ["F16", bytesOf(Uint16Array.of(0x3c00, 0xc000, 0x7c00, 0x0001)), [1, -2, Infinity, 2 ** -24]],
  ["BF16", bytesOf(Uint16Array.of(0x3f80, 0xc000, 0x7f80, 0x0001)), [1, -2, Infinity, 2 ** -133]],
  ["F8_E4M3", all, Array.from(all, (byte) => float8(byte, 4, true))],
  ["F8_E5M2", all, Array.from(all, (byte) => float8(byte, 5, false))],
  ["F8_E4M3FNUZ", all, Array.from(all, (byte) => float8(byte, 4, true, 8))],
  ["F8_E5M2FNUZ", all, Array.from(all, (byte) => float8(byte, 5, false, 16))],
  ["F4", all, Array.from(all, (byte) => [byte & 15, byte >> 4].map(float4)).flat()],
  ["F8_E8M0", all, Array.from(all, (byte) => (byte === 255 ? NaN : 2 ** (byte - 127)))],
  ["I64", bytesOf(BigInt64Array.of(1n, -5n)), [1, -5]],
  ["I32", bytesOf(Int32Array.of(7, -70000)), [7, -70000]],
  ["I16", bytesOf(Int16Array.of(7, -32768)), [7, -32768]],
  ["I8", Uint8Array.of(1, 128, 255), [1, -128, -1]],
  ["U64", bytesOf(BigUint64Array.of(1n, 2n ** 62n)), [1, 2 ** 62]],
  ["U32", bytesOf(Uint32Array.of(1, 2 ** 32 - 256)), [1, 2 ** 32 - 256]],
  ["U16", bytesOf(Uint16Array.of(1, 65535, 32768)), [1, 65535, 32768]],
  ["U8", all, Array.from(all)],
  ["BOOL", Uint8Array.of(0, 1, 1), [0, 1, 1]],
];

const typed = join(folder, "types.safetensors");
const tensors = Object.fromEntries(
  CASES.map(([dtype, bytes, expected]) => [dtype, { dtype, shape: [expected.length], bytes }]),
);
// Data that is not aligned to anything.
writeFileSync(typed, safetensorsOf({ odd: { dtype: "I8", shape: [1], bytes: Uint8Array.of(5) }, ...tensors }));

for (const [dtype, bytes, expected] of CASES) {
  test(`${dtype}: every number is what it is`, async () => {
    const model = await openSafetensors(typed);
    const tensor = model.tensor(dtype);
    assert.equal(tensor.dtype, dtype);
    assert.equal(tensor.path, typed);
    assert.deepEqual(Array.from(await tensor.dequantize()), expected);
    if (tensor.byteLength === bytes.length) assert.deepEqual(await tensor.read(), bytes.slice());
    const stats = await tensor.stats();
    assert.equal(stats.nan, expected.filter(Number.isNaN).length);
    assert.deepEqual(Array.from(await tensor.dequantize({ start: 1, end: 2 })), [expected[1]]);
    model.close();
  });
}

test("a number of type U64 beyond 2^63 is an error", async () => {
  const file = safetensorsOf({
    a: { dtype: "U64", shape: [1], bytes: bytesOf(BigUint64Array.of(2n ** 63n)) },
  });
  const model = await openSafetensors(new Blob([file]));
  await assert.rejects(model.tensor("a").dequantize(), { code: "ERR_GGUF_RANGE", message: /'a'/ });
});

test("rows, products and comparisons are those of a GGUF file", async () => {
  const weights = Float32Array.from(numbers(64 * 40));
  const path = join(folder, "matrix.safetensors");
  writeFileSync(
    path,
    safetensorsOf({ w: { dtype: "F32", shape: [40, 64], bytes: bytesOf(weights) } }, { format: "pt", "": "x" }),
  );
  const gguf = join(folder, "matrix.gguf");
  await new GgufWriter().addTensor("w", "F32", [64, 40], weights).write(gguf);
  const [model, other] = [await openSafetensors(pathToFileURL(path)), openSync(gguf)];
  const [ours, theirs] = [model.tensor("w"), other.tensor("w")];
  assert.deepEqual(ours.shape, [64, 40]);
  assert.deepEqual(await ours.rows([39, 3, 3]), theirs.rowsSync([39, 3, 3]));
  const x = Float32Array.from(numbers(128));
  assert.deepEqual(await ours.matmul(x, { start: 2 }), theirs.matmulSync(x, { start: 2 }));
  assert.equal((await ours.compare(theirs)).sameBytes, true);
  assert.equal((await theirs.compare(ours)).different, 0);
  assert.deepEqual(
    [...model.metadata],
    [
      ["safetensors.format", "pt"],
      ["safetensors.", "x"],
    ],
  );
  assert.equal(model.format, "safetensors");
  assert.equal(other.format, "gguf");
  const copy = join(folder, "copy.gguf");
  await GgufWriter.from(model).write(copy);
  assert.equal((await openSync(copy).tensor("w").compare(theirs)).sameBytes, true);
  model.close();
  other.close();
});

test("shapes: none, empty, and more dimensions than ggml has", async () => {
  const file = safetensorsOf({
    scalar: { dtype: "F32", shape: [], bytes: bytesOf(Float32Array.of(3)) },
    empty: { dtype: "F32", shape: [3, 0], bytes: new Uint8Array(0) },
    five: { dtype: "I8", shape: [2, 3, 1, 2, 5], bytes: new Uint8Array(60) },
  });
  const model = await openSafetensors(new Blob([file]));
  const shapes = Array.from(model.tensors.values(), ({ shape }) => [...shape]);
  assert.deepEqual(shapes, [[], [0, 3], [5, 2, 1, 6]]);
  assert.deepEqual(Array.from(await model.tensor("scalar").dequantize()), [3]);
  assert.equal((await model.tensor("empty").dequantize()).length, 0);
  assert.equal((await model.tensor("empty").stats()).count, 0);
});

/** Two files and an index. */
function shards(name: string): string {
  const place = join(folder, name);
  mkdirSync(place);
  const files = { "model-00001-of-00002.safetensors": "a", "model-00002-of-00002.safetensors": "b" };
  const map: Record<string, string> = {};
  for (const [file, tensor] of Object.entries(files)) {
    map[tensor] = file;
    const bytes = bytesOf(Float32Array.of(tensor.charCodeAt(0)));
    writeFileSync(join(place, file), safetensorsOf({ [tensor]: { dtype: "F32", shape: [1], bytes } }));
  }
  writeFileSync(join(place, "model.safetensors.index.json"), JSON.stringify({ weight_map: map }));
  return place;
}

async function expectShards(model: SafetensorsFile): Promise<void> {
  assert.deepEqual([...model.tensors.keys()], ["a", "b"]);
  assert.equal(model.paths.length, 2);
  for (const [name, tensor] of model.tensors) {
    assert.deepEqual(Array.from(await tensor.dequantize()), [name.charCodeAt(0)]);
  }
  model.close();
}

test("a folder, its index, a file, a URL of each, and a repository of the hub", async () => {
  const place = shards("sharded");
  await expectShards(await openSafetensors(place));
  await expectShards(await openSafetensors(join(place, "model.safetensors.index.json")));
  const one = join(folder, "one");
  mkdirSync(one);
  const bytes = bytesOf(Float32Array.of(9));
  writeFileSync(join(one, "model.safetensors"), safetensorsOf({ x: { dtype: "F32", shape: [1], bytes } }));
  const server = await serve((request, response) => {
    const path = join(folder, decodeURIComponent(new URL(request.url!, "http://x").pathname));
    if (existsSync(path)) answerRange(request, response, readFileSync(path));
    else response.writeHead(404).end();
  });
  const url = new URL(server.url).origin;
  await expectShards(await openSafetensors(`${url}/sharded/`));
  await expectShards(await openSafetensors(new URL(`${url}/sharded/model.safetensors.index.json`)));
  for (const from of [one, join(one, "model.safetensors"), `${url}/one/`, `${url}/one/model.safetensors`]) {
    const model = await openSafetensors(from);
    assert.deepEqual(Array.from(await model.tensor("x").dequantize()), [9]);
    model.close();
  }
  mkdirSync(join(folder, "owner", "name", "resolve"), { recursive: true });
  process.env.HF_ENDPOINT = url;
  shards(join("owner", "name", "resolve", "main"));
  await expectShards(await openSafetensors("hf://owner/name"));
  await assert.rejects(openSafetensors("hf://owner/other"), { code: "ERR_GGUF_OPEN" });
  await assert.rejects(openSafetensors(join(folder, "owner")), { code: "ERR_GGUF_OPEN" });
});

test("what is closed, cut off or aborted fails with a code", async () => {
  const path = join(folder, "cut.safetensors");
  writeFileSync(path, safetensorsOf({ a: { dtype: "F32", shape: [1 << 16], bytes: new Uint8Array(1 << 18) } }));
  const model = await openSafetensors(path);
  const tensor = model.tensor("a");
  truncateSync(path, 1 << 17);
  await assert.rejects(tensor.dequantize(), { code: "ERR_GGUF_CHANGED" });
  model.close();
  model.close();
  assert.equal(model.closed, true);
  await assert.rejects(tensor.read(), { code: "ERR_GGUF_CLOSED" });
  assert.throws(() => model.tensors, { code: "ERR_GGUF_CLOSED" });
  await assert.rejects(openSafetensors(typed, { signal: AbortSignal.abort() }), { name: "AbortError" });
  for (const wrong of [1, null, {}]) {
    await assert.rejects(openSafetensors(wrong as unknown as string), { code: "ERR_INVALID_ARG_TYPE" });
  }
  await assert.rejects(openSafetensors(typed, { singal: 1 } as object), { code: "ERR_INVALID_ARG_VALUE" });
});

test("commands take files and folders of safetensors", async () => {
  const place = shards("commands");
  const file = join(place, "model-00001-of-00002.safetensors");
  for (const [args, expected] of [
    [["inspect", place], /2 in 2 tensors[\s\S]*safetensors/],
    [["inspect", "--json", file], /"safetensors\.format|"a"/],
    [["inspect", typed], /1 tensor: F8_E4M3 in the file, F16 here[\s\S]*1 tensor: U8 in the file, I16 here/],
    [["inspect", "--json", typed], /"name":"U8","type":"I16".*"dtype":"U8"/],
    [["stats", file, "a"], /min +97/],
    [["show", file, "a"], /97/],
    [["hash", place], /a$/m],
    [["verify", place], /^ok/],
    [["diff", place, place], /no differences/],
    [["dequantize", place, "*", "-o", join(folder, "out.safetensors")], /2 tensors/],
    [["diff", place, join(folder, "out.safetensors")], /safetensors\.format/],
  ] as const) {
    const { stdout, stderr } = await run([...args]);
    assert.match(stdout, expected, `${args.join(" ")}: ${stderr}`);
  }
  assert.ok(existsSync(join(folder, "out.safetensors")));
  const { status, stderr } = await run(["inspect", join(folder, "nothing.safetensors")]);
  assert.equal(status, 1);
  assert.match(stderr, /no such file/);
});

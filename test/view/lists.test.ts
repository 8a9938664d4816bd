/** The page's lists and addresses: the parts of it that know no browser. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { compareNames, type TensorTable } from "#dist/describe/tensor-table";
import { hashOf, isNear, modelsOf, modelUrl, modelUrlsOf, placeOf, searchOf } from "../../view/lib/address";
import { type Measured, noiseByLayer, PAIR_ORDERS, selectPairs, tensorPairs } from "../../view/lib/pairs";
import { listHeight, rowsInSight, scrollTopFor } from "../../view/lib/rows";
import { blockLines, ORDERS, orderIn, selectTensors } from "../../view/lib/tensor-list";

interface Row {
  name: string;
  type?: string;
  block?: string;
  bytes?: number;
  shape?: string;
}

function tableOf(rows: readonly Row[]): TensorTable {
  const types = [...new Set(rows.map(({ type = "F32" }) => type))];
  const blocks = [...new Set(rows.flatMap(({ block }) => block ?? []))];
  const bytes = Float64Array.from(rows, ({ bytes = 4 }) => bytes);
  return {
    names: rows.map(({ name }) => name),
    types,
    typeOf: Uint32Array.from(rows, ({ type = "F32" }) => types.indexOf(type)),
    shapes: rows.map(({ shape = "1" }) => shape),
    elementCounts: bytes.map((size) => size / 4),
    byteLengths: bytes,
    offsets: new Float64Array(rows.length),
    blocks,
    blockOf: Int32Array.from(rows, ({ block }) => (block === undefined ? -1 : blocks.indexOf(block))),
  };
}

const table = tableOf([
  { name: "token_embd.weight", type: "Q6_K", bytes: 100, shape: "64 x 512" },
  { name: "blk.10.attn_q.weight", block: "blk.10", bytes: 30 },
  { name: "blk.2.attn_q.weight", block: "blk.2", type: "Q6_K", bytes: 20 },
  { name: "blk.10.ffn_up.weight", block: "blk.10", bytes: Number.NaN },
  { name: "output.weight", bytes: 50 },
]);
const names = (indexes: readonly number[]) => indexes.map((i) => table.names[i]);

describe("rows in sight", () => {
  test("are those at the top, with some after them", () => {
    assert.deepEqual(rowsInSight(1000, 40, 0, 400), { first: 0, end: 16, top: 0 });
  });
  test("and those around where the list is scrolled to", () => {
    assert.deepEqual(rowsInSight(1000, 40, 4000, 400), { first: 94, end: 116, top: 3760 });
  });
  test("of a short list are all, of an empty one none", () => {
    assert.deepEqual(rowsInSight(3, 40, 0, 400), { first: 0, end: 3, top: 0 });
    assert.deepEqual(rowsInSight(0, 40, 0, 400), { first: 0, end: 0, top: 0 });
  });
  test("are few, however long the list is and wherever it is scrolled to", () => {
    for (const count of [10, 1000, 200_000, 1_000_000, 100_000_000]) {
      const height = listHeight(count, 40);
      assert.ok(height <= 8_000_000);
      for (let step = 0; step <= 100; step++) {
        const scrollTop = (Math.max(0, height - 400) * step) / 100;
        const { first, end, top } = rowsInSight(count, 40, scrollTop, 400);
        assert.ok(first >= 0 && end <= count && end - first <= 23, `${count}: ${first} to ${end}`);
        // What is in sight is covered by rows.
        assert.ok(top <= scrollTop || first === 0);
        assert.ok(top + (end - first) * 40 >= Math.min(scrollTop + 400, top + (count - first) * 40) - 1e-6);
      }
    }
  });
  test("reach the last row of a list that is pressed together", () => {
    const count = 1_000_000;
    const { end } = rowsInSight(count, 40, listHeight(count, 40) - 400, 400);
    assert.equal(end, count);
  });
  test("are scrolled to, and not where they are in sight", () => {
    assert.equal(scrollTopFor(3, 1000, 40, 0, 400), 0);
    assert.equal(scrollTopFor(10, 1000, 40, 0, 400), 40);
    assert.equal(scrollTopFor(5, 1000, 40, 4000, 400), 200);
    for (const count of [1000, 5_000_000]) {
      for (const row of [0, 1, count >> 1, count - 2, count - 1]) {
        const scrollTop = scrollTopFor(row, count, 40, 12_345, 400);
        const { first, end, top } = rowsInSight(count, 40, scrollTop, 400);
        const y = top + (row - first) * 40;
        assert.ok(row >= first && row < end && y >= scrollTop - 0.5 && y + 40 <= scrollTop + 400.5, `${row}`);
      }
    }
  });
});

describe("the list of tensors", () => {
  test("is searched by every word, in name, type and shape", () => {
    assert.deepEqual(names(selectTensors(table, "", "file")), table.names);
    assert.deepEqual(names(selectTensors(table, " ATTN q6_k", "file")), ["blk.2.attn_q.weight"]);
    assert.deepEqual(names(selectTensors(table, "x 512", "file")), ["token_embd.weight"]);
    assert.deepEqual(selectTensors(table, "nothing", "size"), []);
  });
  test("is sorted", () => {
    assert.deepEqual(selectTensors(table, "", "name"), [2, 1, 3, 4, 0]);
    assert.deepEqual(selectTensors(table, "", "size"), [0, 4, 1, 2, 3]);
    assert.deepEqual(selectTensors(table, "", "weights"), [0, 4, 1, 2, 3]);
    assert.deepEqual(selectTensors(table, "", "type"), [1, 3, 4, 0, 2]);
    assert.deepEqual(selectTensors(table, "", "size", true), [3, 2, 1, 4, 0]);
    assert.deepEqual(orderIn(ORDERS, "-size", "file"), ["size", true]);
    assert.deepEqual(orderIn(ORDERS, "-nope", "file"), ["file", false]);
    for (const order of ORDERS) assert.equal(selectTensors(table, "", order).length, 5);
  });
  test("compares numbers in names by what they are", () => {
    const sorted = ["b", "blk.10.a", "blk.2.a", "blk.2.b", "blk.10", "a9", "a10", "a"].sort(compareNames);
    assert.deepEqual(sorted, ["a", "a9", "a10", "b", "blk.2.a", "blk.2.b", "blk.10", "blk.10.a"]);
  });
  test("has a title before the tensors of each block, and leaves out those of closed ones", () => {
    const all = selectTensors(table, "", "file");
    assert.deepEqual(blockLines(table, all, new Set()), [
      { tensor: 0 },
      { block: 0, count: 2, bytes: 30, isOpen: true },
      { tensor: 1 },
      { tensor: 3 },
      { block: 1, count: 1, bytes: 20, isOpen: true },
      { tensor: 2 },
      { tensor: 4 },
    ]);
    assert.deepEqual(blockLines(table, all, new Set([0, 1])), [
      { tensor: 0 },
      { block: 0, count: 2, bytes: 30, isOpen: false },
      { block: 1, count: 1, bytes: 20, isOpen: false },
      { tensor: 4 },
    ]);
  });
});

describe("pairs of tensors", () => {
  test("are those of one name, and what only one side has", () => {
    const a = tableOf([{ name: "same" }, { name: "type" }, { name: "shape", shape: "2" }, { name: "a" }]);
    const b = tableOf([{ name: "b" }, { name: "shape" }, { name: "type", type: "F16" }, { name: "same" }]);
    assert.deepEqual(tensorPairs(a, b), [
      { name: "same", a: 0, b: 3, what: "", isComparable: true },
      { name: "type", a: 1, b: 2, what: "F32 -> F16", isComparable: true },
      { name: "shape", a: 2, b: 1, what: "2 -> 1", isComparable: false },
      { name: "a", a: 3, b: -1, what: "only in A", isComparable: false },
      { name: "b", a: -1, b: 0, what: "only in B", isComparable: false },
    ]);
  });
});

describe("addresses", () => {
  const base = "http://127.0.0.1:8080/token/?url=x";
  test("count from the page", () => {
    assert.equal(modelUrl("model/a.gguf", base), "http://127.0.0.1:8080/token/model/a.gguf");
    assert.equal(modelUrl(" https://example.com/a.gguf?x=1 ", base), "https://example.com/a.gguf?x=1");
  });
  test("of Hugging Face are those of files, also where a page shows the file", () => {
    const file = "https://huggingface.co/owner/name/resolve/main/q/a.gguf";
    assert.equal(modelUrl("https://huggingface.co/owner/name/blob/main/q/a.gguf", base), file);
    assert.equal(modelUrl(file, base), file);
    assert.equal(modelUrl("hf://owner/name/a.gguf", base), "hf://owner/name/a.gguf");
    const elsewhere = "https://example.com/owner/name/blob/main/a.gguf";
    assert.equal(modelUrl(elsewhere, base), elsewhere);
  });
  test("are not those of programs or files", () => {
    for (const text of ["javascript:alert(1)", "file:///etc/passwd", "data:,x", "blob:x", "", "http://"]) {
      assert.throws(() => modelUrl(text, base), Error, text);
    }
  });
  test("are named by the page's URL, two at most", () => {
    assert.deepEqual(modelUrlsOf("?url=a.gguf&x=1&url=b.gguf&url=c.gguf"), ["a.gguf", "b.gguf"]);
    assert.deepEqual(modelUrlsOf(""), ["", ""]);
  });
  test("of models survive the way through the page's URL, and can be read there", () => {
    for (const urls of [
      ["", ""],
      ["", "b.gguf"],
      ["https://example.com/a b.gguf?x=1&y=%2F#z", "model/1/\u00e9+.gguf"],
    ] as const) {
      assert.deepEqual(modelUrlsOf(searchOf(urls)), urls);
    }
    assert.equal(searchOf(["model/0/a.gguf", ""]), "?url=model/0/a.gguf");
    assert.equal(searchOf(["", "hf://o/n/a.gguf"]), "?url=&url=hf://o/n/a.gguf");
  });
  test("of this machine are near", () => {
    for (const url of ["", "model/0/a.gguf", "http://localhost:1234/a.gguf"]) assert.ok(isNear(url, base), url);
    for (const url of [
      "remote/0/a.gguf",
      "hf://o/n/a.gguf",
      "https://127.0.0.1.example.com/a.gguf",
      "http://localhost.example/a",
    ]) {
      assert.ok(!isNear(url, base), url);
    }
  });
  test("files that are chosen together are a model, or two to compare", () => {
    const files = (...names: string[]) => names.map((name) => ({ name }));
    const shards = files("m-00001-of-00002.gguf", "m-00002-of-00002.gguf");
    assert.deepEqual(modelsOf(shards), [shards, []]);
    const [a, b] = files("a.gguf", "b.gguf") as [{ name: string }, { name: string }];
    assert.deepEqual(modelsOf([a, b]), [[a], [b]]);
    assert.deepEqual(modelsOf([a]), [[a], []]);
  });
  test("places survive the way through the URL", () => {
    for (const rest of ["", "blk.0.attn_q.weight", "a/b %25#?<script>\u00e9"]) {
      for (const view of [{}, { search: "blk.*.attn_[qk]* & %+?#=", order: "size" }] as const) {
        const place = { tab: "tensors", rest, view };
        assert.deepEqual(placeOf(hashOf(place)), place);
      }
    }
    const found = hashOf({ tab: "tensors", rest: "a.b", view: { search: "blk.* x" } });
    assert.equal(found, "#tensors/a.b?search=blk.*+x");
    assert.deepEqual(placeOf("#tensors/%E0%A4%A"), { tab: "tensors", rest: "", view: {} });
    assert.deepEqual(placeOf("#tensors?order=%E0%A4"), {
      tab: "tensors",
      rest: "",
      view: { order: "\ufffd" },
    });
    assert.deepEqual(placeOf(""), { tab: "", rest: "", view: {} });
  });
});

describe("in what pairs of tensors differ", () => {
  const other = tableOf([
    { name: "output.weight", bytes: 50 },
    { name: "blk.2.attn_q.weight", block: "blk.2", type: "Q8_0" },
    { name: "blk.10.attn_q.weight", block: "blk.10", shape: "2" },
    { name: "extra" },
    { name: "blk.10.ffn_up.weight", block: "blk.10" },
  ]);
  const pairs = tensorPairs(table, other);
  const found = (snr: number, maxError: number) => ({ snr, maxError }) as Measured;
  const at = (name: string) => pairs.findIndex((pair) => pair.name === name);
  const measured = new Map<number, Measured>([
    [at("blk.2.attn_q.weight"), found(30, 0.5)],
    [at("output.weight"), found(Number.POSITIVE_INFINITY, 0)],
  ]);
  const select = (search: string, order: (typeof PAIR_ORDERS)[number]) =>
    selectPairs(pairs, measured, search, order).map((i) => pairs[i]!.name);

  test("the worst first: what cannot be compared, the noisy ones, the exact ones, what is not known yet", () => {
    const expected = ["token_embd.weight", "blk.10.attn_q.weight", "extra", "blk.2.attn_q.weight", "output.weight"];
    assert.deepEqual(select("", "snr"), [...expected, "blk.10.ffn_up.weight"]);
    assert.deepEqual(select("", "error"), [...expected, "blk.10.ffn_up.weight"]);
    measured.set(at("blk.10.ffn_up.weight"), found(12, 0.1));
    assert.deepEqual(select("blk. ", "snr").slice(1), ["blk.10.ffn_up.weight", "blk.2.attn_q.weight"]);
    assert.deepEqual(select("blk. ", "error").slice(1), ["blk.2.attn_q.weight", "blk.10.ffn_up.weight"]);
    measured.set(at("blk.10.ffn_up.weight"), { failure: "the file has changed" });
    assert.ok(select("", "snr").indexOf("blk.10.ffn_up.weight") < 4);
  });
  test("by name and as in the file, each once, and found by globs and what is different", () => {
    for (const order of PAIR_ORDERS) assert.equal(new Set(select("", order)).size, pairs.length);
    assert.deepEqual(
      select("", "file"),
      pairs.map(({ name }) => name),
    );
    assert.deepEqual(select("blk.*.attn_?.weight", "name"), ["blk.2.attn_q.weight", "blk.10.attn_q.weight"]);
    assert.deepEqual(select("only", "name"), ["extra", "token_embd.weight"]);
  });
  test("have signal to noise by layer, the worst of each", () => {
    measured.set(at("blk.10.ffn_up.weight"), found(12, 0.1));
    measured.set(at("blk.10.attn_q.weight"), found(Number.NaN, 1));
    const { titles, points, worst } = noiseByLayer(table, pairs, measured, 10);
    assert.deepEqual(titles, ["blk.2", "blk.10", "outside"]);
    assert.equal(points.length, 3);
    assert.deepEqual(
      worst.map(({ column, snr }) => [column, snr]),
      [
        [0, 30],
        [1, 12],
      ],
    );
    assert.deepEqual(noiseByLayer(table, pairs, new Map(), 10).points, []);
  });
});

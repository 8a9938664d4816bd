/** Files that each break one rule of the format. */
import { type ByteOrder, ByteWriter } from "./byte-writer";
import { type TypedValue, valueTypeNumber, writeTensorInfo, writeValue } from "./gguf-writer";

/** What opening such a file must say. */
export interface BadFile {
  name: string;
  code: string;
  message: RegExp;
  /** The byte that the error names. */
  offset: number;
  bytes: Uint8Array;
}

export const badFiles: BadFile[] = [];

const MAGIC = Buffer.from("GGUF");
export const F32 = 0;
export const Q4_0 = 2;
const MOST = 2n ** 64n - 1n;

/** A file is bad: `write` builds it, and marks the byte that the error must name. */
const bad =
  (code: string) =>
  (name: string, message: RegExp, write: (w: ByteWriter) => unknown, byteOrder?: ByteOrder): void => {
    const w = new ByteWriter(byteOrder);
    write(w);
    badFiles.push({ name, code, message, offset: w.marked, bytes: w.done() });
  };
const truncated = bad("ERR_GGUF_TRUNCATED");
const invalid = bad("ERR_GGUF_INVALID");
const foreign = bad("ERR_GGUF_MAGIC");
const unknown = bad("ERR_GGUF_VERSION");

/** Magic, version 3, counts. */
export function head(w: ByteWriter, tensors: number | bigint, keys: number | bigint): ByteWriter {
  return w.bytes(MAGIC).u32(3).u64(tensors).u64(keys);
}

/** One key named "key", whose value type comes next. */
const named = (w: ByteWriter, name = "key"): ByteWriter => head(w, 0, 1).string(name).mark();
/** The same with its value type; then comes its value. */
const key = (w: ByteWriter, type: number): ByteWriter => named(w).u32(type).mark();
/** An array up to its length. */
const array = (w: ByteWriter, type: number): ByteWriter => key(w, 9).u32(type).mark();

// Magic, version, counts
truncated("an empty file", /empty/, () => {});
foreign("a byte-swapped magic", /FUGG/, (w) => w.bytes(Buffer.from("FUGG")).zeros(60));
for (const version of [0, 4, 0x7fffffff]) {
  unknown(`version ${version}`, /version/, (w) => w.bytes(MAGIC).mark().u32(version).zeros(60));
}
unknown("big-endian version 9", /version is 9/, (w) => w.bytes(MAGIC).mark().u32(9).zeros(60), "big");
for (const [count, rest] of [
  [1000, 0],
  [MOST, 100],
] as const) {
  const start = (w: ByteWriter) => w.bytes(MAGIC).u32(3);
  truncated(`${count} keys`, /keys do not fit/, (w) => start(w).u64(0).mark().u64(count).zeros(rest));
  truncated(`${count} tensors`, /tensors do not fit/, (w) => start(w).mark().u64(count).u64(0).zeros(rest));
}

// Keys
for (const length of [50, MOST]) {
  truncated(`a key of ${length} bytes`, /name of key 0/, (w) => head(w, 0, 1).mark().u64(length).zeros(20));
}
for (const length of [0, 65_536]) {
  const name = "k".repeat(length);
  invalid(`a key of ${length} bytes`, new RegExp(`${length} bytes`), (w) =>
    head(w, 0, 1).mark().string(name).u32(0).zeros(20),
  );
}
invalid("a key twice", /two keys/, (w) =>
  head(w, 0, 2).string("key").u32(0).u8(1).mark().string("key").u32(0).u8(2),
);
for (const type of [13, 255, 2 ** 32 - 1]) {
  const message = new RegExp(`${type}`);
  invalid(`value type ${type}`, message, (w) => named(w).u32(type).zeros(16));
  invalid(`element type ${type}`, message, (w) => key(w, 9).u32(type).u64(1).zeros(16));
}

// Values
invalid("a bool of 2", /bool/, (w) => key(w, 7).u8(2));
invalid("a bool of 2 in an array", /bool/, (w) => array(w, 7).u64(4).u8(0).u8(1).mark().u8(2).u8(1));
for (const length of [9, MOST]) {
  truncated(`a string of ${length} bytes`, /past the end/, (w) => key(w, 8).u64(length).zeros(8));
}
for (const [what, type, count] of [
  ["2^64-1 u8", 0, MOST],
  ["2^62 u32: 2^64 bytes", 4, 2n ** 62n],
  ["2^61 strings", 8, 2n ** 61n],
] as const) {
  truncated(`an array of ${what}`, /past the end|do(es)? not fit/, (w) => array(w, type).u64(count).zeros(8));
}
truncated("an array whose second string is cut off", /past the end/, (w) =>
  array(w, 8).u64(2).string("a").mark().u64(30).zeros(4),
);
// The error is in the first array that lies too deep: the sixty-fourth inside the one that the key holds.
invalid("arrays nested 100,000 deep", /deep|nest/i, (w) => {
  key(w, 9);
  for (let depth = 0; depth < 100_000; depth++) (depth === 64 ? w.mark() : w).u32(9).u64(1);
  w.u32(0).u64(0);
});
// general.alignment
for (const [what, { type, value }, message, isOfValue] of [
  ["3", { type: "uint32", value: 3 }, /alignment is 3/, true],
  ["as u64", { type: "uint64", value: 32 }, /uint64/, false],
  ["past the end", { type: "uint32", value: 2 ** 31 }, /past the end/, true],
] as const) {
  invalid(`alignment ${what}`, message, (w) => {
    named(w, "general.alignment").u32(valueTypeNumber(type));
    writeValue(isOfValue ? w.mark() : w, { type, value } as TypedValue);
  });
}

// Tensors
/** A tensor "t" without its data, after no keys: the mark is where its number of dimensions is, and `after` that. */
function tensor(
  w: ByteWriter,
  after: number,
  type: number,
  shape: (number | bigint)[],
  offset: number | bigint,
) {
  head(w, 1, 0);
  const entry = w.offset;
  writeTensorInfo(w, { name: "t", type, shape }, offset);
  w.marked = entry + 9 + after;
  return w;
}
const badTensor = (
  name: string,
  message: RegExp,
  after: number,
  shape: (number | bigint)[],
  { type = F32, offset = 0 as number | bigint, define = invalid } = {},
) => define(name, message, (w) => tensor(w, after, type, shape, offset).align(32).zeros(64));
truncated("a tensor name that runs past the end", /name of tensor 0/, (w) =>
  head(w, 1, 0).mark().u64(99).zeros(30),
);
badTensor("five dims", /5 dimensions/, 0, [1, 1, 1, 1, 1]);
invalid("2^32-1 dims", /4294967295 dimensions/, (w) =>
  head(w, 1, 0)
    .string("t")
    .mark()
    .u32(2 ** 32 - 1)
    .zeros(64),
);
badTensor("a dim of 2^63", /2\^63/, 4, [2n ** 63n]);
badTensor("dims that multiply to 2^64", /2\^63/, 12, [2n ** 32n, 2n ** 32n]);
badTensor("dims that multiply to 0 but for a 0", /2\^63/, 12, [2n ** 62n, 2n ** 62n, 0]);
badTensor("a byte size of 2^64", /2\^63 bytes/, 4, [2n ** 62n]);
badTensor("a row of half a block", /multiple of the 32/, 4, [16, 2], { type: Q4_0 });
badTensor("an offset that is not aligned", /multiple of the alignment/, 16, [1], { offset: 4 });
badTensor("data past the end", /past the end/, 16, [17], { define: truncated });
badTensor("an offset past the end", /past the end/, 16, [1], { offset: 2n ** 40n, define: truncated });
badTensor("an offset that wraps", /past the end/, 16, [16], { offset: 2n ** 64n - 32n, define: truncated });
truncated("no padding and no data", /past the end|do(es)? not fit/, (w) => tensor(w, 0, F32, [1], 0).mark());
for (const [what, names, offsets, message, after] of [
  ["a tensor name twice", ["t", "t"], [0, 64], /two tensors/, 0],
  ["tensors that share bytes", ["a", "b"], [0, 32], /overlap/, 25],
  ["tensors that share bytes, out of order", ["a", "b"], [32, 0], /overlap/, 25],
  ["tensors at the same place", ["a", "b"], [0, 0], /overlap/, 25],
] as const) {
  invalid(what, message, (w) => {
    head(w, 2, 0);
    for (const i of [0, 1] as const) {
      w.marked = w.offset + after;
      writeTensorInfo(w, { name: names[i], type: F32, shape: [16] }, offsets[i]);
    }
    w.align(32).zeros(128);
  });
}

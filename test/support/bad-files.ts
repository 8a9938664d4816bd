/** Files that each break one rule of the format. */
import { type ByteOrder, ByteWriter } from "./byte-writer";
import { valueTypeNumber, writeTensorInfo, writeValue } from "./gguf-writer";

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

/** A file is bad: `write` builds it and returns the byte that the error must name. */
function bad(
  name: string,
  code: string,
  message: RegExp,
  write: (w: ByteWriter) => number,
  w = new ByteWriter(),
) {
  const offset = write(w);
  badFiles.push({ name, code, message, offset, bytes: w.done() });
}

const truncated = (name: string, message: RegExp, write: (w: ByteWriter) => number, w?: ByteWriter) =>
  bad(name, "ERR_GGUF_TRUNCATED", message, write, w);
const invalid = (name: string, message: RegExp, write: (w: ByteWriter) => number, w?: ByteWriter) =>
  bad(name, "ERR_GGUF_INVALID", message, write, w);

/** Magic, version 3, counts. */
export function head(w: ByteWriter, tensors: number | bigint, keys: number | bigint): ByteWriter {
  return w.bytes(MAGIC).u32(3).u64(tensors).u64(keys);
}

/** The byte that an error must name, whatever is written. */
function at(offset: number, _written: ByteWriter): number {
  return offset;
}

/** One key named "key" of a value type; then comes its value. */
function key(w: ByteWriter, type: number, name = "key"): ByteWriter {
  return head(w, 0, 1).string(name).u32(type);
}

// Magic, version, counts
truncated("an empty file", /empty/, () => 0);
truncated("half a magic", /magic/, (w) => at(0, w.bytes(MAGIC.subarray(0, 2))));
bad("another magic", "ERR_GGUF_MAGIC", /not a GGUF/, (w) => at(0, w.bytes(Buffer.from("GGML")).zeros(60)));
bad("a byte-swapped magic", "ERR_GGUF_MAGIC", /FUGG/, (w) => at(0, w.bytes(Buffer.from("FUGG")).zeros(60)));
for (const version of [0, 4, 0x7fffffff]) {
  bad(`version ${version}`, "ERR_GGUF_VERSION", /version/, (w) =>
    at(4, w.bytes(MAGIC).u32(version).zeros(60)),
  );
}
bad(
  "big-endian version 9",
  "ERR_GGUF_VERSION",
  /version is 9/,
  (w) => at(4, w.bytes(MAGIC).u32(9).zeros(60)),
  new ByteWriter("big"),
);
truncated("no counts", /number of tensors/, (w) => w.bytes(MAGIC).u32(3).offset);
truncated("no key count", /number of keys/, (w) => w.bytes(MAGIC).u32(3).u64(0).offset);
truncated("more keys than bytes", /keys do not fit/, (w) => head(w, 0, 1000).offset - 8);
truncated("more tensors than bytes", /tensors do not fit/, (w) => head(w, 1000, 0).offset - 16);
truncated("2^64-1 keys", /keys do not fit/, (w) => at(16, head(w, 0, 2n ** 64n - 1n).zeros(100)));
truncated("2^64-1 tensors", /tensors do not fit/, (w) => at(8, head(w, 2n ** 64n - 1n, 0).zeros(100)));

// Keys
truncated("a key that runs past the end", /name of key 0/, (w) => at(24, head(w, 0, 1).u64(50).zeros(20)));
truncated("a key of 2^64-1 bytes", /name of key 0/, (w) =>
  at(
    24,
    head(w, 0, 1)
      .u64(2n ** 64n - 1n)
      .zeros(20),
  ),
);
invalid("an empty key", /0 bytes/, (w) => at(24, head(w, 0, 1).string("").u32(0).zeros(20)));
invalid("a key of 65,536 bytes", /65536 bytes/, (w) =>
  at(24, head(w, 0, 1).string("k".repeat(65536)).u32(0).u8(1)),
);
invalid("a key twice", /two keys/, (w) => {
  const second = head(w, 0, 2).string("key").u32(0).u8(1).offset;
  return at(second, w.string("key").u32(0).u8(2));
});
for (const type of [13, 255, 2 ** 32 - 1]) {
  invalid(`value type ${type}`, new RegExp(`${type}`), (w) => key(w, type).zeros(16).offset - 20);
  invalid(
    `element type ${type}`,
    new RegExp(`${type}`),
    (w) => key(w, 9).u32(type).u64(1).zeros(16).offset - 28,
  );
}

// Values
for (const [name, size] of [
  ["uint8", 1],
  ["uint16", 2],
  ["int32", 4],
  ["float32", 4],
  ["bool", 1],
  ["uint64", 8],
  ["float64", 8],
] as const) {
  truncated(`a ${name} that is cut off`, /past the end/, (w) => {
    const value = key(w, valueTypeNumber(name)).offset;
    w.zeros(size - 1);
    return value;
  });
}
invalid("a bool of 2", /bool/, (w) => key(w, 7).u8(2).offset - 1);
invalid("a bool of 2 in an array", /bool/, (w) => key(w, 9).u32(7).u64(4).u8(0).u8(1).u8(2).u8(1).offset - 2);
truncated("a string that runs past the end", /past the end/, (w) => key(w, 8).u64(9).zeros(8).offset - 16);
truncated(
  "a string of 2^64-1 bytes",
  /past the end/,
  (w) =>
    key(w, 8)
      .u64(2n ** 64n - 1n)
      .zeros(8).offset - 16,
);
truncated(
  "an array of 2^64-1 u8",
  /past the end|do(es)? not fit/,
  (w) =>
    key(w, 9)
      .u32(0)
      .u64(2n ** 64n - 1n)
      .zeros(8).offset - 16,
);
truncated(
  "an array of 2^62 u32: 2^64 bytes",
  /past the end|do(es)? not fit/,
  (w) =>
    key(w, 9)
      .u32(4)
      .u64(2n ** 62n)
      .zeros(8).offset - 16,
);
truncated(
  "an array of 2^61 strings",
  /past the end|do(es)? not fit/,
  (w) =>
    key(w, 9)
      .u32(8)
      .u64(2n ** 61n)
      .zeros(8).offset - 16,
);
truncated(
  "an array whose second string is cut off",
  /past the end/,
  (w) => key(w, 9).u32(8).u64(2).string("a").u64(30).zeros(4).offset - 12,
);
invalid("arrays nested 100,000 deep", /deep|nest/i, (w) => {
  key(w, 9);
  for (let depth = 0; depth < 100_000; depth++) w.u32(9).u64(1);
  w.u32(0).u64(0);
  return depthLimitOffset();
});
/** The element type of the first array that lies too deep: the sixty-fourth inside the one that the key holds. */
function depthLimitOffset(): number {
  return key(new ByteWriter(), 9).offset + 64 * 12;
}
for (const byteOrder of ["little", "big"] as ByteOrder[]) {
  truncated(
    `version-3 lengths, ${byteOrder}-endian`,
    /past the end/,
    (w) => key(w, 8).u64(9).zeros(8).offset - 16,
    new ByteWriter(byteOrder),
  );
}

// general.alignment
const alignment = (w: ByteWriter, type: "uint32" | "uint64" | "string" | "int32", value: number | string) => {
  const start = head(w, 0, 1).string("general.alignment").offset;
  w.u32(valueTypeNumber(type));
  writeValue(w, { type, value } as never);
  return start;
};
invalid("alignment 0", /alignment is 0/, (w) => alignment(w, "uint32", 0) + 4);
invalid("alignment 3", /alignment is 3/, (w) => alignment(w, "uint32", 3) + 4);
invalid("alignment as u64", /uint64/, (w) => alignment(w, "uint64", 32));
invalid("alignment as i32", /int32/, (w) => alignment(w, "int32", 32));
invalid("alignment as string", /string/, (w) => alignment(w, "string", "32"));
invalid("alignment past the end", /past the end/, (w) => alignment(w, "uint32", 2 ** 31) + 4);

// Tensors
/** One tensor "t" after no keys; returns where its directory entry starts. */
function tensor(
  w: ByteWriter,
  type: number,
  shape: (number | bigint)[],
  offset: number | bigint,
  data: number,
): number {
  const entry = head(w, 1, 0).offset;
  writeTensorInfo(w, { name: "t", type, shape }, offset);
  w.align(32).zeros(data);
  return entry;
}
const NAME = 9;
truncated("a tensor name that runs past the end", /name of tensor 0/, (w) =>
  at(24, head(w, 1, 0).u64(99).zeros(30)),
);
invalid("five dims", /5 dimensions/, (w) => tensor(w, F32, [1, 1, 1, 1, 1], 0, 64) + NAME);
invalid(
  "2^32-1 dims",
  /4294967295 dimensions/,
  (w) =>
    head(w, 1, 0)
      .string("t")
      .u32(2 ** 32 - 1)
      .zeros(64).offset - 68,
);
invalid("a dim of 2^63", /2\^63/, (w) => tensor(w, F32, [2n ** 63n], 0, 64) + NAME + 4);
invalid(
  "dims that multiply to 2^64",
  /2\^63/,
  (w) => tensor(w, F32, [2n ** 32n, 2n ** 32n], 0, 64) + NAME + 12,
);
invalid(
  "dims that multiply to 0 but for a 0",
  /2\^63/,
  (w) => tensor(w, F32, [2n ** 62n, 2n ** 62n, 0], 0, 64) + NAME + 12,
);
invalid("a byte size of 2^64", /2\^63 bytes/, (w) => tensor(w, F32, [2n ** 62n], 0, 64) + NAME + 4);
invalid("a row of half a block", /multiple of the 32/, (w) => tensor(w, Q4_0, [16, 2], 0, 64) + NAME + 4);
invalid(
  "an offset that is not aligned",
  /multiple of the alignment/,
  (w) => tensor(w, F32, [1], 4, 64) + NAME + 4 + 8 + 4,
);
truncated("data past the end", /past the end/, (w) => tensor(w, F32, [17], 0, 64) + NAME + 4 + 8 + 4);
truncated(
  "an offset past the end",
  /past the end/,
  (w) => tensor(w, F32, [1], 2n ** 40n, 64) + NAME + 4 + 8 + 4,
);
truncated(
  "an offset that wraps",
  /past the end/,
  (w) => tensor(w, F32, [16], 2n ** 64n - 32n, 64) + NAME + 4 + 8 + 4,
);
truncated("no padding and no data", /past the end|do(es)? not fit/, (w) => {
  head(w, 1, 0);
  writeTensorInfo(w, { name: "t", type: F32, shape: [1] }, 0);
  return w.offset;
});
/** Two tensors; returns where the second entry starts. */
function twoTensors(w: ByteWriter, first: [string, number], second: [string, number]): number {
  head(w, 2, 0);
  writeTensorInfo(w, { name: first[0], type: F32, shape: [16] }, first[1]);
  const entry = w.offset;
  writeTensorInfo(w, { name: second[0], type: F32, shape: [16] }, second[1]);
  w.align(32).zeros(128);
  return entry;
}
const OFFSET = NAME + 4 + 8 + 4;
invalid("a tensor name twice", /two tensors/, (w) => twoTensors(w, ["t", 0], ["t", 64]));
invalid("tensors that share bytes", /overlap/, (w) => twoTensors(w, ["a", 0], ["b", 32]) + OFFSET);
invalid(
  "tensors that share bytes, out of order",
  /overlap/,
  (w) => twoTensors(w, ["a", 32], ["b", 0]) + OFFSET,
);
invalid("tensors at the same place", /overlap/, (w) => twoTensors(w, ["a", 0], ["b", 0]) + OFFSET);

/** Files that each break one rule of the format, in every version and byte order. */
import { ggmlTypes } from "gguf-native/reference";
import { type ByteOrder, ByteWriter, type Version } from "./byte-writer";
import { VALUE_TYPES } from "./gguf-writer";

/** What opening such a file must say. */
export interface BadFile {
  name: string;
  code: string;
  message: RegExp;
  /** The byte that the error names. */
  offset: number;
  bytes: Uint8Array;
  /** Whether the file is good with the option `partial`: only its data is missing. */
  isGoodInPart: boolean;
}

/** How a bad file is written, with the byte that the error must name marked; false where this version has none. */
type Write = (w: ByteWriter) => unknown;
interface Rule {
  name: string;
  code: string;
  message: RegExp;
  write: Write;
  isGoodInPart: boolean;
}
const rules: Rule[] = [];

export const FORMATS: readonly [ByteOrder, Version][] = [
  ["little", 3],
  ["big", 3],
  ["little", 2],
  ["little", 1],
];

/** All of them in one format. */
export function badFilesIn(byteOrder: ByteOrder, version: Version): BadFile[] {
  return rules.flatMap(({ write, ...rest }) => {
    const w = new ByteWriter(byteOrder, version);
    return write(w) === false ? [] : [{ ...rest, offset: w.marked, bytes: w.done() }];
  });
}

const MAGIC = Buffer.from("GGUF");
export const F32 = 0;
/** The largest count or length that there is room for. */
const mostOf = (w: ByteWriter): bigint => (w.version === 1 ? 2n ** 32n : 2n ** 64n) - 1n;

const bad =
  (code: string, isGoodInPart = false) =>
  (name: string, message: RegExp, write: Write): void => {
    rules.push({ name, code, message, write, isGoodInPart });
  };
const truncated = bad("ERR_GGUF_TRUNCATED");
const invalid = bad("ERR_GGUF_INVALID");
const foreign = bad("ERR_GGUF_MAGIC");
const unknown = bad("ERR_GGUF_VERSION");
/** Of which only the data is missing. */
const withoutData = bad("ERR_GGUF_TRUNCATED", true);
const withoutPadding = bad("ERR_GGUF_INVALID", true);

/** Magic and version. */
const start = (w: ByteWriter): ByteWriter => w.bytes(MAGIC).u32(w.version);
/** Magic, version, counts. */
export function head(w: ByteWriter, tensors: number | bigint, keys: number | bigint): ByteWriter {
  return start(w).count(tensors).count(keys);
}

/** One key named "key", whose value type comes next. */
const named = (w: ByteWriter, name = "key"): ByteWriter => head(w, 0, 1).string(name).mark();
/** The same with its value type; then comes its value. */
const key = (w: ByteWriter, type: number): ByteWriter => named(w).u32(type).mark();
/** An array up to its length. */
const array = (w: ByteWriter, type: number): ByteWriter => key(w, 9).u32(type).mark();

// Magic, version, counts
truncated("an empty file", /empty/, () => {});
truncated("three bytes", /magic/, (w) => w.bytes(Buffer.from("GGU")));
foreign("a byte-swapped magic", /FUGG/, (w) => w.bytes(Buffer.from("FUGG")).zeros(60));
foreign("two bytes of something else", /'GX'/, (w) => w.bytes(Buffer.from("GX")));
foreign("a pointer of Git LFS", /Git LFS/, (w) => w.bytes(Buffer.from("version https://git-lfs.github.com/spec/v1\n")));
for (const version of [0, 4, 9, 0xffff, 0x10000, 0x4000000, 0x7fffffff, 0xffff0000, 2 ** 32 - 1]) {
  unknown(`version ${version}`, /version is/, (w) => w.bytes(MAGIC).mark().u32(version).zeros(60));
}
for (const count of [1000n, undefined]) {
  const [name, rest] = count === undefined ? ["all", 100] : [count, 0];
  const of = (w: ByteWriter): bigint => count ?? mostOf(w);
  truncated(`${name} keys`, /keys do not fit/, (w) => start(w).count(0).mark().count(of(w)).zeros(rest));
  truncated(`${name} tensors`, /tensors do not fit/, (w) => start(w).mark().count(of(w)).count(0).zeros(rest));
  truncated(`a key of ${name} bytes`, /name of key 0/, (w) => head(w, 0, 1).mark().count(of(w)).zeros(20));
  truncated(`a tensor name of ${name} bytes`, /name of tensor 0/, (w) => head(w, 1, 0).mark().count(of(w)).zeros(60));
}
truncated("a byte less than 3 tensors", /3 tensors do not fit/, (w) =>
  start(w)
    .mark()
    .count(3)
    .count(0)
    .zeros(w.version === 1 ? 59 : 71),
);
truncated("two tensors behind a long key", /2 tensors do not fit/, (w) =>
  head(w, 2, 1).string("a").u32(8).string("x".repeat(100)).mark(),
);

// Keys
for (const length of [0, 65_536]) {
  const name = "k".repeat(length);
  invalid(`a key of ${length} bytes`, new RegExp(`${length} bytes`), (w) =>
    head(w, 0, 1).mark().string(name).u32(0).zeros(20),
  );
}
invalid("a key twice", /key 'key': there are two keys of this name, number 0 and number 2/, (w) =>
  head(w, 0, 3).string("key").u32(0).u8(1).string("x").u32(0).u8(1).mark().string("key").u32(0).u8(2),
);
for (const type of [13, 255, 2 ** 32 - 1]) {
  invalid(`value type ${type}`, new RegExp(`'bad\\\\nkey': the value type is ${type}`), (w) =>
    named(w, "bad\nkey").u32(type).zeros(16),
  );
  const message = new RegExp(`element type is ${type}`);
  invalid(`element type ${type}`, message, (w) => key(w, 9).u32(type).count(1).zeros(16));
  invalid(`inner element type ${type}`, message, (w) => array(w, 9).count(1).mark().u32(type).count(0).zeros(16));
}

// Values
invalid("a bool of 2", /key 'key': a bool is 2/, (w) => key(w, 7).u8(2));
invalid("a bool of 255 in an array", /bool is 255/, (w) => array(w, 7).count(4).u8(0).u8(1).mark().u8(255).u8(1));
invalid("a bool of 3 in an inner array", /bool is 3/, (w) =>
  array(w, 9).count(2).u32(7).count(1).u8(1).u32(7).count(2).u8(0).mark().u8(3),
);
truncated("a number that is cut off", /uint64/, (w) => key(w, 10).zeros(7));
for (const less of [undefined, 0n, 7n, 8n, 70n]) {
  const length = (w: ByteWriter): bigint => (less === undefined ? 9n : mostOf(w) - less);
  const name = less === undefined ? "9" : `all but ${less}`;
  truncated(`a string of ${name} bytes`, /\d bytes.* past the end/, (w) => key(w, 8).count(length(w)).zeros(8));
  truncated(`a third string of ${name} bytes`, /string 2 \(\d+ bytes\)/, (w) =>
    array(w, 8).count(3).string("one").string("two").mark().count(length(w)).zeros(4),
  );
}
truncated("a length that is cut off", /the length of string 1/, (w) =>
  array(w, 8).count(2).string("a long one, for the count to fit").mark().zeros(3),
);
// One too many, all that there is room for, and counts whose bytes wrap to a small number.
for (const [type, name] of VALUE_TYPES.entries()) {
  const sizes: readonly number[] = [1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8];
  const sizeIn = (w: ByteWriter): bigint =>
    BigInt((sizes[type] as number) - (w.version === 1 && (type === 8 || type === 9) ? 4 : 0));
  for (const [what, count] of [
    ["one too many", (w: ByteWriter) => 64n / sizeIn(w) + 1n],
    ["all", mostOf],
    ["all bytes and one", (w: ByteWriter) => mostOf(w) / sizeIn(w) + 1n],
    ["half of all", (w: ByteWriter) => mostOf(w) / 2n + 1n],
  ] as const) {
    truncated(
      `an array of ${name}: ${what}`,
      new RegExp(`array of \\d+ ${name}`),
      (w) => count(w) <= mostOf(w) && array(w, type).count(count(w)).zeros(64),
    );
  }
}
truncated("an inner array of all uint32", /uint32 does not fit/, (w) =>
  array(w, 9).count(2).u32(0).count(0).u32(4).mark().count(mostOf(w)).zeros(64),
);
// The error is in the first array that lies too deep: the sixty-fourth inside the one that the key holds.
invalid("arrays nested 100,000 deep", /more than 64 deep/, (w) => {
  key(w, 9);
  for (let depth = 0; depth < 100_000; depth++) (depth === 64 ? w.mark() : w).u32(9).count(1);
  w.u32(0).count(0);
});
// general.alignment
for (const value of [0, 3, 33, 2 ** 31 + 1, 2 ** 32 - 1]) {
  invalid(`alignment ${value}`, new RegExp(`alignment is ${value}`), (w) =>
    named(w, "general.alignment").u32(4).mark().u32(value).zeros(64),
  );
}
invalid("alignment as uint64", /uint64/, (w) => named(w, "general.alignment").u32(10).u64(32).zeros(64));
invalid("alignment as array", /array/, (w) => named(w, "general.alignment").u32(9).u32(4).count(1).u32(32).zeros(64));

// Tensors
/**
 * Tensors such as "t F32 8,2 @0", divided by semicolons, then padding and bytes. A star is in front of what the error must
 * name: "*t", "*#8,2" for the number of dimensions, "8,*2", "*@0".
 */
const tensors =
  (text: string, rest = 64, alignment?: number): Write =>
  (w) => {
    const entries = text.split("; ");
    head(w, entries.length, alignment === undefined ? 0 : 1);
    if (alignment !== undefined) w.string("general.alignment").u32(4).u32(alignment);
    const at = (part: string): string => {
      if (part.startsWith("*")) w.mark();
      return part.replace("*", "");
    };
    for (const entry of entries) {
      const [name, type, shape, offset] = entry.split(" ") as [string, string, string, string];
      const dims = shape.split(/[,#]/).filter((dim) => /\d/.test(dim));
      if (w.version === 1 && dims.some((dim) => Number(dim.replace("*", "")) >= 2 ** 32)) return false;
      w.string(at(name));
      (shape.startsWith("*#") ? w.mark() : w).u32(dims.length);
      for (const dim of dims) w.count(BigInt(at(dim)));
      w.u32((ggmlTypes as Partial<Record<string, { id: number }>>)[type]?.id ?? 99);
      w.u64(BigInt(at(offset).slice(1)));
    }
    return w.align(alignment ?? 32).zeros(rest);
  };
invalid("a tensor name of more than a MiB", /1048577 bytes/, tensors(`*${"n".repeat(2 ** 20 + 1)} F32 1 @0`));
invalid("five dims", /5 dimensions/, tensors("t F32 *#1,1,1,1,1 @0"));
invalid("2^32-1 dims", /4294967295 dimensions/, (w) => head(w, 1, 0).string("t").mark().i32(-1).zeros(64));
invalid("a dim of 2^63", /dimension 1 is 9223372036854775808/, tensors(`t F32 1,*${2n ** 63n} @0`));
const more = /multiply to 2\^63 or more/;
invalid("dims that multiply to 2^64", more, tensors("t F32 4294967296,*4294967296 @0"));
invalid("dims that multiply to 2^64 - 2^33 + 1", more, tensors("t F32 4294967295,*4294967295,1,1 @0"));
invalid("dims that multiply to 0 but for a 0", more, tensors("t F32 0,4294967295,*4294967295 @0"));
invalid("a byte size of 2^64", /2\^63 bytes/, tensors("t F32 *2147483648,2147483649 @0"));
invalid("a row of half a block", /rows have 255 elements, not .* the 256/, tensors("t Q4_K *255,256 @0", 1e5));
invalid("a block without dimensions", /rows have 1 elements/, (w) =>
  head(w, 1, 0).string("t").u32(0).mark().u32(2).u64(0).zeros(64),
);
invalid("an offset that is not aligned", /16, not a multiple of .* 32/, tensors("t F32 1 *@16"));
invalid("an offset not aligned to 64", /multiple of the alignment 64/, tensors("t none 1 *@32", 64, 64));
invalid("a tensor name twice", /tensor 't': there are two/, tensors("t F32 1 @0; u F32 1 @32; *t F32 1 @64", 68));
const shares = /tensor 'b': its data.* overlaps that of tensor 'a'/;
invalid("tensors that share bytes", shares, tensors("a F32 9 @0; b F32 8 *@32"));
invalid("tensors at the same place", shares, tensors("a F32 8 @0; b F32 8 *@0"));
invalid("tensors that share bytes, out of order", shares, tensors("a F32 8 @32; b F32 16 *@0"));
invalid("tensors that share a byte", shares, tensors("late I8 8 @64; a I8 33 @0; b I8 8 *@32", 96));
invalid("one in a long one", shares, tensors("l F32 8 @96; a F32 20 @0; n F32 0 @32; b F32 1 *@64", 128));
// Those that wrap are no missing data.
for (const below of [32n, 64n, 96n, 128n]) {
  const text = `t F32 32 *@${2n ** 64n - below}`;
  truncated(`an offset ${below} below 2^64`, /past the end/, tensors(text, 512));
}

// What is good if data may be missing
for (const [text, rest] of [
  ...["t F32 17 *@0", `t F32 1 *@${2n ** 40n}`, `t F32 1 *@${2n ** 63n}`].map((text) => [text, 64] as const),
  ...["F32 0", "F32 1", "none 0", "none 1"].map((type) => [`t ${type} *@64`, 63] as const),
  ...[339, 353, 359].map((rest) => ["t Q2_0 1280 *@0", rest] as const),
] as const) {
  withoutData(`${text} and ${rest} bytes`, /is cut off/, tensors(text, rest));
}
withoutData("no padding and no data", /would start at byte/, (w) =>
  head(w, 1, 0).string("t").u32(1).count(0).u32(F32).u64(0).mark(),
);
withoutPadding("alignment past the end", /general.alignment.* past the end/, (w) =>
  named(w, "general.alignment")
    .u32(4)
    .mark()
    .i32(-(2 ** 31))
    .zeros(64),
);

// Blocks of 34 bytes for 128 weights, which PrismML's fork wrote as type 42.
const ofFork = /tensor 't': the tensors of type 42 have blocks of 34 bytes/;
const unsupported = "ERR_GGUF_UNSUPPORTED_TYPE";
bad(unsupported, true)("type 42 of a fork", ofFork, tensors("t Q2_0 1280 *@0", 340));
const twice = tensors("t Q2_0 1280 *@0; u Q2_0 1280 @352; v F32 64 @704", 960);
bad(unsupported)("type 42 of a fork, twice", ofFork, twice);
invalid(
  "types of another fork",
  /overlaps that of tensor 't'.*may be IQ2_TN of ik/,
  tensors("t PQ2_0 1280 @0; u F32 1 *@320", 384),
);

export const badFiles = badFilesIn("little", 3);

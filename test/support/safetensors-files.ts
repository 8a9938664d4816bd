/** Safetensors files: good ones, and files that each break one rule of the format. */
import type { BadFile } from "./bad-files";

/** A tensor of a header. */
export interface Entry {
  dtype: string;
  shape: readonly number[];
  data_offsets: readonly number[];
}

/** A file with this header, as JSON or as text, and this data. */
export function safetensors(
  header: Record<string, unknown> | string | Uint8Array,
  data: Uint8Array | number = 0,
): Buffer {
  const json =
    typeof header === "string" || header instanceof Uint8Array
      ? Buffer.from(header as string)
      : Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, typeof data === "number" ? Buffer.alloc(data) : data]);
}

/** A file with these tensors, back to back. */
export function safetensorsOf(
  tensors: Record<string, { dtype: string; shape: readonly number[]; bytes: Uint8Array }>,
  metadata?: Record<string, string>,
): Buffer {
  const header: Record<string, unknown> = metadata === undefined ? {} : { __metadata__: metadata };
  let end = 0;
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, end + bytes.length] };
    end += bytes.length;
  }
  return safetensors(header, Buffer.concat(Object.values(tensors).map(({ bytes }) => bytes)));
}

/** What opening such files must say. */
export const badSafetensors: Omit<BadFile, "isGoodInPart">[] = [];

/** A file whose header is this text. The error is at the character '§', which is left out, or at byte `offset`. */
function bad(name: string, message: RegExp, text: string, data = 4, code = "ERR_GGUF_INVALID", offset?: number): void {
  const at = Buffer.from(text.split("§")[0]!).length;
  badSafetensors.push({
    name,
    code,
    message,
    offset: offset ?? 8 + at,
    bytes: safetensors(text.replace("§", ""), data),
  });
}

function badBytes(name: string, code: string, message: RegExp, offset: number, bytes: Uint8Array): void {
  badSafetensors.push({ name, code, message, offset, bytes });
}

const one = (fields: string): string => `{"a":§{${fields}}}`;
const shaped = (shape: string, offsets = "0,4"): string =>
  `{"a":§{"dtype":"F32","shape":[${shape}],"data_offsets":[${offsets}]}}`;
/** The same with the error in the shape. */
const dimensions = (shape: string): string => `{"a":{"dtype":"F32","shape":[${shape}],"data_offsets":[0,4]}}`;
const good = '"dtype":"F32","shape":[1],"data_offsets":[0,4]';

badBytes("an empty file", "ERR_GGUF_TRUNCATED", /has 0 bytes/, 0, Buffer.alloc(0));
badBytes("a file of eight bytes", "ERR_GGUF_TRUNCATED", /has 8 bytes/, 0, Buffer.alloc(8));
const gguf = Buffer.from("GGUF\x03\0\0\0\0\0\0\0\0\0\0\0");
badBytes("a GGUF file", "ERR_GGUF_INVALID", /no safetensors file/, 8, gguf);
badBytes(
  "a header that is longer than the file",
  "ERR_GGUF_TRUNCATED",
  /header has 99 bytes, but the file ends at byte 10/,
  0,
  Buffer.concat([Buffer.from([99, 0, 0, 0, 0, 0, 0, 0]), Buffer.from("{}")]),
);
badBytes(
  "a header of 2^63 bytes",
  "ERR_GGUF_INVALID",
  /at most 100000000/,
  0,
  Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 0, 0, 0x80]), Buffer.from("{}")]),
);
badBytes(
  "a header that is not UTF-8",
  "ERR_GGUF_INVALID",
  /not UTF-8/,
  8,
  safetensors(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])),
);
bad("a header that is an array", /begin with '\{'/, "§[]");
bad("a header that does not end", /must be '\}'/, `{"a":{${good}}§`);
bad("text after the header", /should end here/, `{"a":{${good}}}§x`);
bad("a name that does not end", /does not end/, '{§"a');
bad("an escape that does not exist", /does not allow/, '{§"\\x":{}}');
bad("half a character", /half a character/, `{§"\\ud800":{${good}}}`);
bad("a name of many characters", /20000 characters/, `{§"${"a".repeat(20000)}":{${good}}}`);
bad("a name twice", /a name is there twice/, `{"a":{${good}},§"\\u0061":{${good}}}`);
bad("__metadata__ twice", /a name is there twice/, '{"__metadata__":{},§"__metadata__":{}}');
bad("a key of __metadata__ twice", /a name is there twice/, '{"__metadata__":{"k":"1",§"k":"2"}}');
bad("__metadata__ with a number", /must be '"'/, '{"__metadata__":{"k":§1}}');
bad("__metadata__ that is a list", /must be '\{'/, '{"__metadata__":§[]}');
bad("a tensor that is a number", /must be '\{'/, '{"a":§1}');
bad("a tensor without fields", /missing/, one(""));
bad("a tensor without type", /missing/, one('"shape":[1],"data_offsets":[0,4]'));
bad("a tensor without shape", /missing/, one('"dtype":"F32","data_offsets":[0,4]'));
bad("a tensor without offsets", /missing/, one('"dtype":"F32","shape":[1]'));
bad("one offset", /missing/, shaped("1", "0"));
bad("three offsets", /at most 2/, '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,§8]}}');
bad("another field", /not 'type'/, `{"a":{${good},§"type":1}}`);
bad("a field of many characters", /not 'x{200}'/, `{"a":{§"${"x".repeat(20_000)}":1}}`);
bad("a field with a control character", /not '\\u009b'/, '{"a":{§"\u009b":1}}');
bad("a field twice", /twice/, `{"a":{${good},§"shape":[1]}}`);
bad(
  "an unknown type",
  /its type is 'C64', complex numbers; read are F64/,
  '{"a":{"dtype":§"C64","shape":[1],"data_offsets":[0,4]}}',
  4,
  "ERR_GGUF_UNSUPPORTED_TYPE",
);
bad("a negative dimension", /whole number/, dimensions("§-1"));
bad("a broken dimension", /whole number/, dimensions("§1.5"));
bad("a dimension with an exponent", /whole number/, dimensions("§1e0"));
bad("a dimension with a zero before it", /whole number|must be '\]'/, dimensions("§01"));
bad("a dimension of 2^53", /whole number/, dimensions("§9007199254740992"));
bad("33 dimensions", /at most 32/, dimensions(`${"1,".repeat(32)}§1`));
bad("dimensions that multiply to 2^53 and more", /2\^53/, shaped("67108864,67108864,16"));
bad("such dimensions beside a zero", /2\^53/, shaped("67108864,67108864,16,0", "0,0"));
bad("offsets that are 2^53 with the header", /2\^53/, shaped("1", "9007199254740987,9007199254740991"));
bad("data that is too short for its shape", /takes 8 bytes/, shaped("2"));
bad("data that ends before it begins", /takes 4 bytes/, shaped("1", "4,0"));
bad("data that begins late", /there is a hole/, `{§"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8);
bad(
  "data of two tensors that overlap",
  /they overlap/,
  `{"a":{${good}},§"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`,
  6,
);
bad(
  "data of two tensors with a hole between them",
  /there is a hole/,
  `{§"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]},"a":{${good}}}`,
  6,
);
bad(
  "data that runs past the end",
  /incomplete: has \d+ bytes, needs \d+;/,
  `{§"a":{${good}}}`,
  3,
  "ERR_GGUF_TRUNCATED",
);
{
  const text = `{"a":{${good}}}`;
  bad("data after the last tensor", /data of all tensors ends/, text, 5, "ERR_GGUF_INVALID", 8 + text.length + 4);
}

/** What every byte is as E4M3 (no infinities) or E5M2, by the definition. */
export function float8(byte: number, exponentBits: number, hasNoInfinity: boolean, bias = 2 ** (exponentBits - 1) - 1) {
  const mantissaBits = 7 - exponentBits;
  const sign = byte & 0x80 ? -1 : 1;
  const exponent = (byte & 0x7f) >> mantissaBits;
  const mantissa = byte & ((1 << mantissaBits) - 1);
  if (bias === 2 ** (exponentBits - 1)) {
    // FNUZ: the only NaN is where -0 would be.
    if (byte === 0x80) return NaN;
  } else if (hasNoInfinity ? (byte & 0x7f) === 0x7f : exponent === 31)
    return hasNoInfinity || mantissa ? NaN : sign * Infinity;
  const fraction = mantissa / 2 ** mantissaBits;
  return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias));
}

export const float4 = (code: number): number =>
  ([0, 0.5, 1, 1.5, 2, 3, 4, 6][code & 7] as number) * (code & 8 ? -1 : 1);

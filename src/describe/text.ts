/** Names, numbers and sizes as text: escaped, grouped, with units. */

/**
 * What could move a terminal: control characters (C0, DEL, C1), line separators, characters of format, such as marks that
 * turn the direction of text. And what is invisible, so that two names would look the same.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const SHORT: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

/** `text` with everything that is not plain printing text written as `\n`, `\x1b`, `\u202e` or `\u{e0041}`. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, (char) => {
    const code = char.codePointAt(0) as number;
    const short = SHORT[char] ?? (code < 256 ? `\\x${hex(code, 2)}` : undefined);
    return short ?? (code < 65536 ? `\\u${hex(code, 4)}` : `\\u{${hex(code, 5)}}`);
  });
}

/** JSON with the same written as `\u202e`: the same to its reader. Of C0, only the line feeds of its layout are in it. */
export function escapeJson(json: string): string {
  return json.replace(UNSAFE, (char) => {
    if (char === "\n") return char;
    return Array.from({ length: char.length }, (_, i) => `\\u${hex(char.charCodeAt(i), 4)}`).join("");
  });
}

/** Text as that of an element, or the value of an attribute. */
export function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** What some file system does not allow, or changes: at the ends also what hides a file, or makes it an option. */
const NOT_IN_FILE_NAMES = /[%/\\:*?"<>|]|^[-.\s]|[.\s]$/gu;
/** What is a device on Windows, whatever follows the first dot. */
const DEVICE = /^(con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³]|conin\$|conout\$)(?= *(\.|$))/i;

/** A name as that of a file in every system: the bytes of anything unsafe as %XX. No two names become the same. */
export function fileNameOf(name: string): string {
  const percent = (char: string): string => {
    return Array.from(new TextEncoder().encode(char), (byte) => `%${hex(byte, 2).toUpperCase()}`).join("");
  };
  const escaped = name.replace(NOT_IN_FILE_NAMES, percent).replace(UNSAFE, percent);
  return escaped.replace(DEVICE, (device) => percent(device.slice(0, 1)) + device.slice(1)) || "%";
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

/** `text`, or its beginning and an ellipsis, of `length` UTF-16 units at most. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** 1536 as "1.5 KiB". */
export function humanBytes(bytes: number): string {
  if (Number.isNaN(bytes)) return "?";
  return scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
}

/** 7241732096 as "7.24 B" (billion). */
export function humanCount(count: number): string {
  return scaled(count, 1000, ["", "K", "M", "B", "T", "Q"]);
}

function scaled(value: number, base: number, units: readonly string[]): string {
  let unit = 0;
  let rest = value;
  // 999.5 and up would print as 1000
  for (; rest >= base - 0.5 && unit < units.length - 1; unit++) rest /= base;
  const digits = unit === 0 ? 0 : rest < 10 ? 2 : rest < 100 ? 1 : 0;
  return `${rest.toFixed(digits)} ${units[unit]}`.trimEnd();
}

/** 32000 as "32,000". By hand: the first number that Intl formats takes 25 ms. */
export function grouped(value: number | bigint): string {
  if (typeof value === "number" && !Number.isInteger(value)) return String(value);
  return String(BigInt(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 tensor", "2 tensors". */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A shape as stored, contiguous dimension first: "4096 x 32000". */
export function shapeText(shape: readonly number[]): string {
  return shape.length === 0 ? "scalar" : shape.join(" x ");
}

/** A binary32 in the fewest digits that tell it from its neighbours: 0.1 rather than 0.10000000149011612. */
export function float32Text(value: number): string {
  if (Object.is(value, -0)) return "-0";
  for (let digits = 1; digits <= 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

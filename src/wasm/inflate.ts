/**
 * Inflates what deflate made (RFC 1951), at once: browsers do that in a stream only, and what waits for a stream cannot be
 * called synchronously. The data is our own, so it is not checked.
 */

/** Lengths and distances: the least value of each code, and how many more bits say how much more. */
const LENGTHS = codesOf(29, 3, 2, 258);
const DISTANCES = codesOf(30, 1, 1);

/** The order in which the lengths of the codes for code lengths are stored. */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** The end of a block, and the first code of a length. */
const END = 256;
const FIRST_LENGTH = 257;

/** Extra bits rise by one every `1 << step` codes; the last code may stand for one value alone. */
function codesOf(
  count: number,
  first: number,
  step: number,
  last?: number,
): { base: number; bits: number }[] {
  const codes: { base: number; bits: number }[] = [];
  for (let i = 0, base = first; i < count; i++) {
    const bits = Math.max(0, (i >> step) - 1);
    codes.push({ base, bits });
    base += 1 << bits;
  }
  if (last !== undefined) codes[count - 1] = { base: last, bits: 0 };
  return codes;
}

/** A canonical Huffman code: how many codes there are of each length, and the symbols in the order of their codes. */
interface Code {
  counts: Uint16Array;
  symbols: Uint16Array;
}

function codeOf(lengths: ArrayLike<number>): Code {
  const counts = new Uint16Array(16);
  for (let i = 0; i < lengths.length; i++) counts[lengths[i]!]!++;
  counts[0] = 0;
  const next = new Uint16Array(16);
  for (let i = 1; i < 16; i++) next[i] = next[i - 1]! + counts[i - 1]!;
  const symbols = new Uint16Array(lengths.length);
  for (let i = 0; i < lengths.length; i++) if (lengths[i] !== 0) symbols[next[lengths[i]!]!++] = i;
  return { counts, symbols };
}

const FIXED_SYMBOLS = codeOf(
  Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)),
);
const FIXED_DISTANCES = codeOf(new Uint8Array(30).fill(5));

/** Inflates to `byteLength` bytes. */
export function inflate(deflated: Uint8Array, byteLength: number): Uint8Array {
  const out = new Uint8Array(byteLength);
  let end = 0;
  let at = 0;
  let held = 0;
  let heldBits = 0;

  function bits(count: number): number {
    for (; heldBits < count; heldBits += 8) held |= deflated[at++]! << heldBits;
    const value = held & ((1 << count) - 1);
    held >>>= count;
    heldBits -= count;
    return value;
  }

  function symbolOf({ counts, symbols }: Code): number {
    for (let length = 1, code = 0, first = 0, index = 0; ; length++) {
      code |= bits(1);
      const count = counts[length]!;
      if (code - count < first) return symbols[index + code - first]!;
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
  }

  function copyStored(): void {
    held = heldBits = 0;
    const length = deflated[at]! | (deflated[at + 1]! << 8);
    at += 4; // the length, and its complement
    out.set(deflated.subarray(at, at + length), end);
    at += length;
    end += length;
  }

  function readCodes(): [symbols: Code, distances: Code] {
    const [symbolCount, distanceCount, lengthCount] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
    const ofLengths = new Uint8Array(19);
    for (let i = 0; i < lengthCount; i++) ofLengths[ORDER[i]!] = bits(3);
    const code = codeOf(ofLengths);
    const lengths = new Uint8Array(symbolCount + distanceCount);
    for (let i = 0; i < lengths.length; ) {
      const symbol = symbolOf(code);
      if (symbol < 16) lengths[i++] = symbol;
      else {
        const repeated = symbol === 16 ? lengths[i - 1]! : 0;
        const count = symbol === 16 ? 3 + bits(2) : symbol === 17 ? 3 + bits(3) : 11 + bits(7);
        lengths.fill(repeated, i, i + count);
        i += count;
      }
    }
    return [codeOf(lengths.subarray(0, symbolCount)), codeOf(lengths.subarray(symbolCount))];
  }

  function readBlock(symbols: Code, distances: Code): void {
    for (let symbol = symbolOf(symbols); symbol !== END; symbol = symbolOf(symbols)) {
      if (symbol < END) {
        out[end++] = symbol;
        continue;
      }
      const length = valueAt(LENGTHS[symbol - FIRST_LENGTH]!);
      const distance = valueAt(DISTANCES[symbolOf(distances)]!);
      // Byte by byte: what is copied may be copied again.
      for (const last = end + length; end < last; end++) out[end] = out[end - distance]!;
    }
  }

  function valueAt({ base, bits: extra }: { base: number; bits: number }): number {
    return base + bits(extra);
  }

  for (let isLast = false; !isLast; ) {
    isLast = bits(1) === 1;
    const kind = bits(2);
    if (kind === 0) copyStored();
    else if (kind === 1) readBlock(FIXED_SYMBOLS, FIXED_DISTANCES);
    else readBlock(...readCodes());
  }
  return out;
}

/**
 * Headers, parsed in the module by the same code as in the addon. What it found comes out as tables; nothing stays in the
 * module. A value is decoded there as well, when its bytes are brought.
 */

import type { GgufValue } from "../../base/metadata-values";
import type { OwnBytes } from "../../base/options";
import type { NativeFileInfo, NativeKeys, NativeTensors } from "../native-surface";
import { outOfMemory } from "./failure";
import { inModule } from "./module";
import { taking } from "./reply";
import { Texts } from "./texts";
import { ARRAY_HEAD, buildValue, STRING, STRING_WORDS, type ValueParts } from "./values";

/** So much of a file is brought to the module at first; then twice as much, until the header ends. */
const FIRST_BYTES = 2 ** 18;

/** The longest header: its bytes and what is found in them must fit in the memory of a module. */
const LARGEST_HEADER = 2 ** 30;

/** The names of a list as they are in the file, from which those that are asked for are decoded. */
interface Names {
  text: OwnBytes;
  /** Two numbers for each, as {@link Texts} takes them. */
  sizes: Uint32Array;
  /** Where each starts in the text, and where the last ends. */
  starts: Float64Array;
  /** Numbers of names that, decoded, hold U+FFFD. */
  replaced: Uint32Array;
}

interface Tables {
  info: NativeFileInfo;
  keys: Omit<NativeKeys, "names">;
  tensors: Omit<NativeTensors, "names">;
  keyNames: Names;
  tensorNames: Names;
  /** Offset and bytes of each tensor, where some are beyond 2^53; otherwise empty. */
  extents: BigUint64Array;
}

/** A parsed header. It keeps nothing of the file's bytes but the names. */
export class ParsedHeader {
  readonly #tables: Tables;
  #keyIndex: NameIndex | undefined;
  #tensorIndex: NameIndex | undefined;

  /** @internal */
  constructor(tables: Tables) {
    this.#tables = tables;
  }

  info(): NativeFileInfo {
    return this.#tables.info;
  }
  keys(first = 0, count: number = this.#tables.info.keyCount): NativeKeys {
    const { keys, keyNames } = this.#tables;
    const end = first + count;
    return {
      names: decodeNames(keyNames, first, end),
      types: keys.types.subarray(first, end),
      elementTypes: keys.elementTypes.subarray(first, end),
      lengths: keys.lengths.subarray(first, end),
      begins: keys.begins.subarray(first, end),
      ends: keys.ends.subarray(first, end),
    };
  }
  tensors(first = 0, count: number = this.#tables.info.tensorCount): NativeTensors {
    const { tensors, tensorNames } = this.#tables;
    const end = first + count;
    return {
      names: decodeNames(tensorNames, first, end),
      types: tensors.types.subarray(first, end),
      dimCounts: tensors.dimCounts.subarray(first, end),
      shapes: tensors.shapes.subarray(4 * first, 4 * end),
      elementCounts: tensors.elementCounts.subarray(first, end),
      byteLengths: tensors.byteLengths.subarray(first, end),
      offsets: tensors.offsets.subarray(first, end),
    };
  }
  /** Where in the file the value of key `index` is. */
  valuePlace(index: number): { begin: number; end: number } {
    const { begins, ends } = this.#tables.keys;
    return { begin: begins[index] as number, end: ends[index] as number };
  }
  /** The type of tensor `index`, and the numbers in a row of it. */
  typeOf(index: number): number {
    return this.#tables.tensors.types[index] as number;
  }
  columnsOf(index: number): number {
    return this.#tables.tensors.shapes[4 * index] as number;
  }
  findKey(name: string): number {
    this.#keyIndex ??= new NameIndex(this.#tables.keyNames);
    return this.#keyIndex.find(name);
  }
  findTensor(name: string): number {
    this.#tensorIndex ??= new NameIndex(this.#tables.tensorNames);
    return this.#tensorIndex.find(name);
  }
  replacedKeys(): Uint32Array {
    return this.#tables.keyNames.replaced;
  }
  replacedTensors(): Uint32Array {
    return this.#tables.tensorNames.replaced;
  }
  /** Where the bytes of tensor `index` are, and how many: exact, which the numbers of {@link tensors} are up to 2^53. */
  extent(index: number): { offset: bigint; byteLength: bigint } {
    const { extents, tensors } = this.#tables;
    const [offset, byteLength] = extents.subarray(2 * index, 2 * index + 2);
    if (offset !== undefined && byteLength !== undefined) return { offset, byteLength };
    return { offset: BigInt(tensors.offsets[index]!), byteLength: BigInt(tensors.byteLengths[index]!) };
  }
  /** The name of key `index` as it is in the file. */
  keyBytes(index: number): OwnBytes {
    return nameAt(this.#tables.keyNames, index);
  }
  /** The name of tensor `index` as it is in the file. */
  tensorNameBytes(index: number): OwnBytes {
    return nameAt(this.#tables.tensorNames, index);
  }

  /** Decodes the value of key `index`. `bytes` are those of the file from `begins[index]` to `ends[index]`. */
  value(index: number, bytes: Uint8Array): GgufValue {
    return this.#read(index, bytes, (parts) => buildValue(this.#tables.keys.types[index]!, parts));
  }

  /** The bytes of a string, or of each string of an array of strings; undefined for other types. */
  valueBytes(index: number, bytes: Uint8Array): OwnBytes | OwnBytes[] | undefined {
    const { types, elementTypes } = this.#tables.keys;
    if (elementTypes[index] !== STRING) return undefined;
    return this.#read(index, bytes, ({ tape, text }) => {
      const isArray = types[index] !== STRING;
      const sizes = tape.subarray(isArray ? ARRAY_HEAD : 0);
      const strings: OwnBytes[] = [];
      for (let i = 0, at = 0; i < sizes.length; i += STRING_WORDS) {
        strings.push(text.subarray(at, at + sizes[i]!) as OwnBytes);
        at += sizes[i]!;
      }
      return isArray ? strings : strings[0];
    });
  }

  #read<T>(index: number, bytes: Uint8Array, build: (parts: ValueParts) => T): T {
    const { keys, info } = this.#tables;
    const name = this.keyBytes(index);
    return inModule((module) => {
      const place = module.put(bytes);
      const reply = module.exports.read_value(
        place,
        bytes.length,
        module.put(name),
        name.length,
        keys.types[index]!,
        keys.elementTypes[index]!,
        keys.lengths[index]!,
        keys.begins[index]!,
        keys.ends[index]!,
        info.version,
        Number(info.bigEndian),
      );
      return taking(module, reply, ([tape, text]) =>
        build({
          tape: new Uint32Array(tape!),
          text: new Uint8Array(text!),
          copy: (at, byteLength) => module.copy(place + at, byteLength),
        }),
      );
    });
  }
}

/**
 * Parses the header of a file of `fileSize` bytes that starts with `bytes`; undefined where the header continues after
 * them. Throws a `Failure` where the file is bad.
 */
export function parseHeader(
  bytes: Uint8Array,
  partial: boolean,
  fileSize: number = bytes.length,
): ParsedHeader | undefined {
  const there = Math.min(bytes.length, fileSize);
  for (let wanted = Math.min(FIRST_BYTES, there); ; ) {
    const outcome = parse(bytes.subarray(0, wanted), partial, fileSize);
    if (typeof outcome !== "number") return outcome;
    if (outcome > there) return undefined;
    if (outcome > LARGEST_HEADER) throw outOfMemory();
    wanted = Math.min(Math.max(outcome, 2 * wanted), LARGEST_HEADER, there);
  }
}

/** The header, or how many bytes are needed at least. */
function parse(bytes: Uint8Array, partial: boolean, fileSize: number): ParsedHeader | number {
  return inModule((module) => {
    const reply = module.exports.parse(module.put(bytes), bytes.length, fileSize, Number(partial));
    return taking(module, reply, (columns) => {
      if (columns.length === 1) return new Float64Array(columns[0]!)[0]!;
      return new ParsedHeader(tablesOf(columns));
    });
  });
}

/** The columns of a reply, taken in the order in which `native/wasm/header.cc` adds them. */
function tablesOf(columns: ArrayBuffer[]): Tables {
  const next = (): ArrayBuffer => columns.shift()!;
  const [version, bigEndian, byteLength, alignment, dataOffset, isSplit, keyCount, tensorCount] = new Float64Array(
    next(),
  ) as unknown as [number, number, number, number, number, number, number, number];
  const [keyText, keySizes] = [next(), next()];
  const keys = {
    types: new Uint8Array(next()),
    elementTypes: new Uint8Array(next()),
    lengths: new Float64Array(next()),
    begins: new Float64Array(next()),
    ends: new Float64Array(next()),
  };
  const keyNames = namesOf(keyText, keySizes, next());
  const [tensorText, tensorSizes] = [next(), next()];
  const tensors = {
    types: new Uint32Array(next()),
    dimCounts: new Uint8Array(next()),
    shapes: new Float64Array(next()),
    elementCounts: new Float64Array(next()),
    byteLengths: new Float64Array(next()),
    offsets: new Float64Array(next()),
  };
  const extents = new BigUint64Array(next());
  const tensorNames = namesOf(tensorText, tensorSizes, next());
  const info: NativeFileInfo = {
    ...{ version, byteLength, alignment, dataOffset, keyCount, tensorCount },
    ...{ bigEndian: bigEndian !== 0, isSplit: isSplit !== 0 },
  };
  return { info, keys, tensors, keyNames, tensorNames, extents };
}

function namesOf(text: ArrayBuffer, sizeColumn: ArrayBuffer, replaced: ArrayBuffer): Names {
  const sizes = new Uint32Array(sizeColumn);
  const starts = new Float64Array(sizes.length / STRING_WORDS + 1);
  for (let i = 1; i < starts.length; i++) starts[i] = starts[i - 1]! + sizes[STRING_WORDS * (i - 1)]!;
  return { text: new Uint8Array(text), sizes, starts, replaced: new Uint32Array(replaced) };
}

function nameAt({ text, starts }: Names, index: number): OwnBytes {
  return text.slice(starts[index], starts[index + 1]);
}

/** Names `first` to `end`. */
function decodeNames({ text, sizes, starts }: Names, first: number, end: number): string[] {
  const bytes = text.subarray(starts[first], starts[end]);
  return new Texts(bytes).take(sizes.subarray(STRING_WORDS * first, STRING_WORDS * end));
}

/** Names of a map of {@link NameIndex}. */
const MAP_NAMES = 2 ** 20;

/** Finds names that do not hold U+FFFD. Several maps, since none can have more than 2^24 entries. */
class NameIndex {
  readonly #maps: Map<string, number>[] = [];

  constructor(names: Names) {
    const count = names.starts.length - 1;
    for (let first = 0; first < count; first += MAP_NAMES) {
      const map = new Map<string, number>();
      const decoded = decodeNames(names, first, Math.min(first + MAP_NAMES, count));
      for (const [i, name] of decoded.entries()) map.set(name, first + i);
      this.#maps.push(map);
    }
  }

  find(name: string): number {
    for (const map of this.#maps) {
      const position = map.get(name);
      if (position !== undefined) return position;
    }
    return -1;
  }
}

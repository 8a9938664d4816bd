/**
 * Headers, parsed in the module by the same code as in the addon. What it found comes out as tables; nothing stays in the
 * module. A value is decoded there as well, when its bytes are brought.
 */
import type { OwnBytes } from "../decode/options";
import type { GgufValue } from "../file/metadata-values";
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

/** The names of a list, decoded and as they are in the file. */
interface Names {
  strings: string[];
  text: OwnBytes;
  /** Where each starts in the text, and where the last ends. */
  starts: Float64Array;
}

interface Tables {
  info: NativeFileInfo;
  keys: NativeKeys;
  tensors: NativeTensors;
  keyNames: Names;
  tensorNames: Names;
}

/** A parsed header. It keeps nothing of the file's bytes but the names. */
export class ParsedHeader {
  readonly #tables: Tables;

  /** @internal */
  constructor(tables: Tables) {
    this.#tables = tables;
  }

  info(): NativeFileInfo {
    return this.#tables.info;
  }
  keys(): NativeKeys {
    return this.#tables.keys;
  }
  tensors(): NativeTensors {
    return this.#tables.tensors;
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
  const [version, bigEndian, byteLength, alignment, dataOffset, isSplit] = new Float64Array(
    next(),
  ) as unknown as [number, number, number, number, number, number];
  const keyNames = namesOf(next(), next());
  const keys: NativeKeys = {
    names: keyNames.strings,
    types: new Uint8Array(next()),
    elementTypes: new Uint8Array(next()),
    lengths: new Float64Array(next()),
    begins: new Float64Array(next()),
    ends: new Float64Array(next()),
  };
  const tensorNames = namesOf(next(), next());
  const tensors: NativeTensors = {
    names: tensorNames.strings,
    types: new Uint32Array(next()),
    dimCounts: new Uint8Array(next()),
    shapes: new Float64Array(next()),
    elementCounts: new Float64Array(next()),
    byteLengths: new Float64Array(next()),
    offsets: new Float64Array(next()),
  };
  const info: NativeFileInfo = {
    ...{ version, byteLength, alignment, dataOffset },
    ...{ bigEndian: bigEndian !== 0, isSplit: isSplit !== 0 },
  };
  return { info, keys, tensors, keyNames, tensorNames };
}

/** `sizes` has two numbers for each name, as {@link Texts} takes them. */
function namesOf(text: ArrayBuffer, sizes: ArrayBuffer): Names {
  const bytes = new Uint8Array(text);
  const pairs = new Uint32Array(sizes);
  const starts = new Float64Array(pairs.length / STRING_WORDS + 1);
  for (let i = 1; i < starts.length; i++) starts[i] = starts[i - 1]! + pairs[STRING_WORDS * (i - 1)]!;
  return { strings: new Texts(bytes).take(pairs), text: bytes, starts };
}

function nameAt({ text, starts }: Names, index: number): OwnBytes {
  return text.slice(starts[index], starts[index + 1]);
}

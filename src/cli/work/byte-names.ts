/** Names by their bytes, one character each: names that are not UTF-8 may look alike. */
const ASCII = /^[\0-\x7f]*$/;

/** The bytes of a name; `bytesOf` is asked only where the name does not tell them. */
export function byteName(name: string, bytesOf: (name: string) => Uint8Array): string {
  if (ASCII.test(name)) return name;
  return Buffer.from(name.includes("\ufffd") ? bytesOf(name) : name).toString("latin1");
}

/** Names of keys or tensors of a model. */
interface Names {
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** Finds names of a model by their bytes. */
export class ByteNames {
  readonly #names: Names;
  readonly #bytesOf: (name: string) => Uint8Array;
  /** Those that are not what decoding their bytes gives, by their bytes. */
  #replaced: Map<string, string> | undefined;

  constructor(names: Names, bytesOf: (name: string) => Uint8Array) {
    this.#names = names;
    this.#bytesOf = bytesOf;
  }

  /** The name with these bytes; undefined where there is none. */
  find(bytes: string): string | undefined {
    const name = ASCII.test(bytes) ? bytes : Buffer.from(bytes, "latin1").toString();
    if (!name.includes("\ufffd")) return this.#names.has(name) ? name : undefined;
    this.#replaced ??= this.#findReplaced();
    return this.#replaced.get(bytes);
  }

  /** The bytes of one of the names. */
  bytesOf(name: string): string {
    return byteName(name, this.#bytesOf);
  }

  #findReplaced(): Map<string, string> {
    const replaced = new Map<string, string>();
    for (const name of this.#names.keys()) {
      if (name.includes("\ufffd")) replaced.set(this.bytesOf(name), name);
    }
    return replaced;
  }
}

/** The keys of a model. */
export function keyNames({
  metadata,
}: {
  metadata: Names & { keyBytes(key: string): Uint8Array | undefined };
}): ByteNames {
  return new ByteNames(metadata, (key) => metadata.keyBytes(key) as Uint8Array);
}

/** The tensors of a model. */
export function tensorNames(file: { tensors: Names; tensor(name: string): { nameBytes(): Uint8Array } }): ByteNames {
  return new ByteNames(file.tensors, (name) => file.tensor(name).nameBytes());
}

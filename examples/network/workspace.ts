/** The memory of a forward pass, where products and the functions between them find their numbers. */
import { instantiate, type Memory, type Simd } from "./simd";

/** Bytes of a page of WebAssembly memory. */
const PAGE = 65536;

/** Numbers in the memory of a workspace. They stay where they are, while arrays over them come and go. */
export class Floats {
  #array: Float32Array | undefined;

  constructor(
    readonly workspace: Workspace,
    readonly address: number,
    readonly length: number,
  ) {}

  /** The functions for these numbers. */
  get simd(): Simd {
    return this.workspace.simd;
  }

  /** The numbers themselves. It is good until the workspace makes something: its memory may grow then. */
  get array(): Float32Array {
    const { buffer } = this.workspace;
    if (this.#array?.buffer !== buffer) this.#array = new Float32Array(buffer, this.address, this.length);
    return this.#array;
  }

  /** The bytes of the numbers, good as long as {@link array}. */
  get bytes(): Uint8Array {
    return new Uint8Array(this.workspace.buffer, this.address, 4 * this.length);
  }

  /** Some of the numbers. */
  part(start: number, length: number): Floats {
    return new Floats(this.workspace, this.address + 4 * start, length);
  }
}

/**
 * What a forward pass reads and writes besides matrices: vectors of the model, and arrays that are used again, since making
 * them for each layer takes longer than some of what is written to them. The memory lasts as long as the workspace.
 */
export class Workspace {
  readonly simd: Simd;
  readonly #memory: Memory;
  /** Where free memory begins. */
  #end: number;
  readonly #named = new Map<string, { floats: Floats; capacity: number }>();

  constructor() {
    const { simd, memory } = instantiate();
    this.simd = simd;
    this.#memory = memory;
    this.#end = Math.ceil(simd.end.value / 64) * 64;
  }

  get buffer(): ArrayBuffer {
    return this.#memory.buffer;
  }

  /** `length` numbers of this name, of any value. They are good until the next call with the name. */
  floats(name: string, length: number): Floats {
    const found = this.#named.get(name);
    if (found?.floats.length === length) return found.floats;
    const fits = found !== undefined && length <= found.capacity;
    // What grows often has its place seldom changed: the old one is lost.
    const capacity = fits ? found.capacity : Math.max(length, 2 * (found?.capacity ?? 0));
    const address = fits ? found.floats.address : this.#take(capacity);
    const floats = new Floats(this, address, length);
    this.#named.set(name, { floats, capacity });
    return floats;
  }

  /** The same, with zeros. */
  zeros(name: string, length: number): Floats {
    const floats = this.floats(name, length);
    floats.array.fill(0);
    return floats;
  }

  /** A copy of numbers, for as long as the workspace is there. */
  copyOf(numbers: Float32Array): Floats {
    const floats = new Floats(this, this.#take(numbers.length), numbers.length);
    floats.array.set(numbers);
    return floats;
  }

  /** Where `count` numbers have room, and as many more as the functions may load beyond them. */
  #take(count: number): number {
    const address = this.#end;
    const end = address + Math.ceil((4 * count + 16) / 64) * 64;
    const missing = end - this.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / PAGE));
    this.#end = end;
    return address;
  }
}

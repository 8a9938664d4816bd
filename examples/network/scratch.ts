/** The arrays of a forward pass. They are used again, since making them takes longer than some of what is written to them. */
export class Scratch {
  readonly #named = new Map<string, Float32Array>();

  /** `length` numbers of this name, of any value. They are good until the next call with the name. */
  floats(name: string, length: number): Float32Array {
    const found = this.#named.get(name);
    if (found?.length === length) return found;
    const fits = found !== undefined && 4 * length <= found.buffer.byteLength;
    const floats = fits ? new Float32Array(found.buffer, 0, length) : new Float32Array(length);
    this.#named.set(name, floats);
    return floats;
  }
}

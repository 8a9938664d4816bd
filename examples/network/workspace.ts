/** Arrays that a forward pass uses again: to make them for each layer takes longer than some of what is written to them. */
export class Workspace {
  readonly #arrays = new Map<string, Float32Array>();

  /** The array of this name, with `length` numbers of any value. It is good until the next call with the name. */
  floats(name: string, length: number): Float32Array {
    const found = this.#arrays.get(name);
    if (found?.length === length) return found;
    const made =
      found !== undefined && found.buffer.byteLength >= found.BYTES_PER_ELEMENT * length
        ? new Float32Array(found.buffer, 0, length)
        : new Float32Array(length);
    this.#arrays.set(name, made);
    return made;
  }

  /** The same, with zeros. */
  zeros(name: string, length: number): Float32Array {
    return this.floats(name, length).fill(0);
  }
}

/** Reproducible random numbers. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** 32 random bits (a Weyl sequence through a mixing function). */
  bits(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return (z ^ (z >>> 14)) >>> 0;
  }

  /** From 0 up to 1. */
  unit(): number {
    return this.bits() / 2 ** 32;
  }

  /** From 0 up to `limit`. */
  below(limit: number): number {
    return Math.floor(this.unit() * limit);
  }

  /** Mean 0, standard deviation 1. */
  gaussian(): number {
    return Math.sqrt(-2 * Math.log(1 - this.unit())) * Math.cos(2 * Math.PI * this.unit());
  }

  fill(bytes: Uint8Array): Uint8Array {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.bits();
    return bytes;
  }
}

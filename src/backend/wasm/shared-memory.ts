/**
 * Modules over memory that threads share. They are made of those that every bundle has: memory becomes an import, and what is in it
 * at the start is taken out, which else every thread would write again. There are no atomic operations in the code: threads agree
 * in JavaScript on who does what (thread.ts).
 */

/** Numbers of sections. Engines take no notice of one that is {@link OTHER}, whatever is in it. */
const OTHER = 0;
const TYPE = 1;
const MEMORY = 5;
const DATA = 11;

/** The most pages of 64 KiB that addresses of 32 bits reach. */
export const MOST_PAGES = 2 ** 16;

/** The import "memory" of "env"; the section with it alone: shared, of one page or more, at most {@link MOST_PAGES}. */
const ENV_MEMORY = [3, 0x65, 0x6e, 0x76, 6, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 2];
const SHARED = 3;
const IMPORTS = Uint8Array.of(2, 18, 1, ...ENV_MEMORY, SHARED, 1, 0x80, 0x80, 4);

export interface SharedForm {
  readonly code: Uint8Array;
  /** Pages of the memory at the start, and what is in them. */
  readonly pages: number;
  readonly segments: readonly { readonly at: number; readonly bytes: Uint8Array }[];
}

/** Of a module that has a memory and imports nothing. */
export function sharedForm(module: Uint8Array): SharedForm {
  const segments: { at: number; bytes: Uint8Array }[] = [];
  const others: number[] = [];
  let [at, pages, types] = [8, 0, 0];
  /** A number of any length (LEB128). */
  const number = (): number => {
    const byte = module[at++]!;
    return byte < 128 ? byte : byte - 128 + 128 * number();
  };
  while (at < module.length) {
    const start = at;
    const id = number();
    const end = number() + at;
    if (id === TYPE) types = end;
    if (id === MEMORY || id === DATA) others.push(start + IMPORTS.length);
    if (id === MEMORY) {
      at += 2; // one, without a limit
      pages = number();
    }
    for (let count = id === DATA ? number() : 0; count > 0; count--) {
      at += 2; // a constant
      const place = number();
      at++; // its end
      const length = number();
      segments.push({ at: place, bytes: module.subarray(at, at + length) });
      at += length;
    }
    at = end;
  }
  const code = new Uint8Array(module.length + IMPORTS.length);
  code.set(module.subarray(0, types));
  code.set(IMPORTS, types);
  code.set(module.subarray(types), types + IMPORTS.length);
  for (const place of others) code[place] = OTHER;
  return { code, pages, segments };
}

/** Of a module that imports the memory of another: `scripts/build/wasm-tools.mjs` gives that the same limit. */
export function besideShared(module: Uint8Array): Uint8Array {
  const code = module.slice();
  const names = code.findIndex((_, i) => ENV_MEMORY.every((byte, j) => code[i + j] === byte));
  code[names + ENV_MEMORY.length] = SHARED;
  return code;
}

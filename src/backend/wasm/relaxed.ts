/**
 * Tiles of products by relaxed SIMD: a small module (`native/wasm/relaxed`) with the memory of the other, for engines that have
 * these instructions. They multiply levels of up to seven bits, with the same bits, in less time.
 */
import { type GgmlType, ggmlTypes } from "../../base/types";
import { type CompiledModule, WebAssembly } from "./globals";
import type { Instance } from "./module";
import { besideShared } from "./shared-memory";
import { addTiles } from "./thread";

/** What the tiles keep in memory: the order of partial sums. Their module says so in its section "dylink.0". */
const DATA_BYTES = 128;

/**
 * A module with two memories. V8 has them since version 12.0. Before, its first compiler made wrong code of relaxed dot products,
 * which were behind a flag in Node.js 20; that may show only in later calls, which no test of values sees.
 */
const TWO_MEMORIES = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 5, 2, 0, 0, 0, 0);

/** For `setModule`: adds tiles to an instance. False where the engine does not have the instructions, or computes them wrongly. */
export function relaxedTiles(bytes: () => Uint8Array): (instance: Instance) => boolean {
  let tiles: CompiledModule | undefined;
  return (instance) => {
    if (!WebAssembly.validate(TWO_MEMORIES)) return false;
    const code = bytes();
    if (!WebAssembly.validate(code)) return false;
    const { exports } = instance;
    if (instance.shared === undefined) tiles ??= new WebAssembly.Module(code);
    const module = instance.shared === undefined ? tiles! : new WebAssembly.Module(besideShared(code));
    instance.tiles = { module, at: exports.allocate(DATA_BYTES) };
    exports.use_tiles(...addTiles(exports, instance.tiles));
    return tilesAreRight(instance);
  };
}

/** Whether products have the bits that they have without SIMD: runs of 16 and 32, with minima and without, tiles of 2 to 4 vectors. */
export function tilesAreRight(instance: Instance): boolean {
  const types = ["Q2_K", "Q6_K", "Q4_K", "Q4_0"] as const;
  return types.every((type) => [3, 4, 5].every((n) => isRight(instance, type, n)));
}

function isRight(instance: Instance, type: GgmlType, n: number): boolean {
  const { id, blockSize, typeSize } = ggmlTypes[type];
  const { exports } = instance;
  const rows = 9;
  const columns = 512;
  // Whatever bytes; no scale is a NaN.
  const blocks = Uint8Array.from(
    { length: ((rows * columns) / blockSize) * typeSize },
    (_, i) => (i * i * 37 + (i >> 3)) & 0xbb,
  );
  const x = Float32Array.from({ length: n * columns }, (_, i) => ((i * i * 31) % 255) - 127);
  const product = (scalar: number): Uint32Array => {
    exports.use_scalar(scalar);
    const products = exports.new_products(id, 0, columns, n, 1, 1);
    exports.products_pack(products, instance.put(new Uint8Array(x.buffer)), 1, 0, 1);
    const y = instance.allocate(4 * n * rows);
    exports.products_multiply(products, instance.put(blocks), rows, y, rows, 0);
    exports.free_products(products);
    return new Uint32Array(instance.copy(y, 4 * n * rows));
  };
  const expected = product(1);
  const isSame = product(0).every((bits, i) => bits === expected[i]);
  instance.freeAll();
  return isSame;
}

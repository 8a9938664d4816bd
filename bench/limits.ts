/** The limits of the machine's memory, measured in this process by a C helper that is compiled when needed. */
import { spawnSync } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { KoffiLibrary, NativeFunction } from "../test/support/koffi";
import type { Contender } from "./measure";
import { INSTALL_HINT, loadKoffi } from "./optional";
import { benchFolder, buildFolder } from "./paths";
import type { Results } from "./results";

const LIMITS = ["store", "stream", "copy", "read"] as const;
export type Limit = (typeof LIMITS)[number];

/** Sets whose instruction for products of bytes `limits_products` knows, in the order of its numbers; bytes that it multiplies. */
const PEAKS: readonly [isa: RegExp, bytes: number][] = [
  [/^avx512/, 64],
  [/^avx2_vnni$/, 32],
  [/^avx2$/, 32],
  [/^neon_/, 16],
];
const PRODUCTS_AT_ONCE = 12;

/** The least that one call of the helper writes or reads, so that the cost of the call does not matter. */
const BYTES_PER_CALL = 4 << 20;

export class MachineLimits {
  readonly #functions: Record<Limit, NativeFunction>;
  readonly #fill: NativeFunction;
  readonly #products: NativeFunction;

  private constructor(library: KoffiLibrary) {
    this.#fill = library.func("limits_fill", "double", ["int64_t", "int"]);
    this.#products = library.func("limits_products", "void", ["int64_t", "int"]);
    const parameters = ["void *", "int64_t", "int64_t", "int"];
    this.#functions = Object.fromEntries(
      LIMITS.map((limit) => {
        const more = limit === "copy" ? ["void *"] : [];
        return [limit, library.func(`limits_${limit}`, "void", [...more, ...parameters])];
      }),
    ) as Record<Limit, NativeFunction>;
  }

  /** The helper. If it cannot be compiled or loaded: undefined, and a note in `results`. */
  static async load(results: Results): Promise<MachineLimits | undefined> {
    const koffi = await loadKoffi();
    const built = koffi === undefined ? { problem: `koffi is not installed (${INSTALL_HINT})` } : compile();
    if (koffi !== undefined && "path" in built) return new MachineLimits(koffi.load(built.path));
    results.miss(`limits of the machine: ${(built as { problem: string }).problem}`);
    return undefined;
  }

  /** A contender that fills or reads `memory` on `threads` threads. `copy` reads from `source`, which has the same length. */
  contender(limit: Limit, memory: ArrayBufferView, threads = 1, source = memory): Contender {
    const run = this.#functions[limit];
    const bytes = memory.byteLength;
    const pointers = limit === "copy" ? [memory, source] : [memory];
    const repeats = Math.max(1, Math.floor(BYTES_PER_CALL / bytes));
    return { name: limit, repeats, run: () => void run(...pointers, bytes, repeats, threads) };
  }

  /** A contender that multiplies so many bytes by the fastest instruction for that in a set; undefined where it is not known. */
  peak(isa: string, count: number): Contender | undefined {
    const set = PEAKS.findIndex(([name]) => name.test(isa));
    if (set < 0) return undefined;
    const times = Math.ceil(count / PRODUCTS_AT_ONCE / (PEAKS[set] as [RegExp, number])[1]);
    return { name: "peak", run: () => void this.#products(times, set) };
  }

  /** Seconds that `threads` threads take to map `bytes` of memory and fill it with plain stores. */
  secondsToFill(bytes: number, threads: number): number | undefined {
    const seconds = this.#fill(bytes, threads) as number;
    return seconds < 0 ? undefined : seconds;
  }
}

function compile(): { path: string } | { problem: string } {
  const source = join(benchFolder, "native", "limits.c");
  const path = join(buildFolder, "limits.so");
  const builtAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (builtAt > statSync(source).mtimeMs) return { path };
  mkdirSync(buildFolder, { recursive: true });
  const compiler = process.env.CC || "cc";
  const flags = ["-O2", "-shared", "-fPIC", "-pthread"];
  const { status, error, stderr } = spawnSync(compiler, [...flags, source, "-o", path], { encoding: "utf8" });
  if (error) return { problem: `no C compiler (${compiler}: ${error.message})` };
  return status === 0 ? { path } : { problem: `${compiler} could not compile limits.c: ${stderr.trim()}` };
}

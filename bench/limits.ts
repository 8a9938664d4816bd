/** The limits of the machine's memory, measured in this process by a C helper that is compiled when needed. */
import { spawnSync } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Contender } from "./measure";
import { INSTALL_HINT, type KoffiLibrary, loadKoffi, type NativeFunction } from "./optional";
import { benchFolder, buildFolder } from "./paths";
import type { Results } from "./results";

/** The limits of outputs. */
export type Limit = "store" | "stream" | "copy";
export const LIMITS: readonly Limit[] = ["store", "stream", "copy"];

/** The least that one call of the helper writes or reads, so that the cost of the call does not matter. */
const BYTES_PER_CALL = 4 << 20;

export class MachineLimits {
  /** The width of the vectors that are stored and read: "256-bit". */
  readonly width: string;
  readonly #functions: Record<Limit | "read", NativeFunction>;
  readonly #fill: NativeFunction;

  private constructor(library: KoffiLibrary) {
    this.width = String(library.func("limits_width", "str", [])());
    this.#fill = library.func("limits_fill", "double", ["int64_t", "int"]);
    const tail = ["int64_t", "int64_t", "int"];
    this.#functions = {
      store: library.func("limits_store", "void", ["void *", ...tail]),
      stream: library.func("limits_stream", "void", ["void *", ...tail]),
      copy: library.func("limits_copy", "void", ["void *", "void *", ...tail]),
      read: library.func("limits_read", "void", ["void *", ...tail]),
    };
  }

  /** The helper. If it cannot be compiled or loaded: undefined, and a note in `results`. */
  static async load(results: Results): Promise<MachineLimits | undefined> {
    const koffi = await loadKoffi();
    if (koffi === undefined) {
      results.miss(`limits of the machine: koffi is not installed (${INSTALL_HINT})`);
      return undefined;
    }
    const built = compile();
    if ("problem" in built) {
      results.miss(`limits of the machine: ${built.problem}`);
      return undefined;
    }
    return new MachineLimits(koffi.load(built.path));
  }

  /** A contender that fills `out` on `threads` threads. `copy` reads from `source`, which has the same length. */
  contender(limit: Limit, out: Float32Array, source: Float32Array, threads = 1): Contender {
    return this.#contender(limit, limit === "copy" ? [out, source] : [out], threads);
  }

  /** A contender, "read", that reads `source` on `threads` threads. */
  reader(source: ArrayBufferView, threads = 1): Contender {
    return this.#contender("read", [source], threads);
  }

  /** Seconds that `threads` threads take to map `bytes` of memory and fill it with plain stores. */
  secondsToFill(bytes: number, threads: number): number | undefined {
    const seconds = this.#fill(bytes, threads) as number;
    return seconds < 0 ? undefined : seconds;
  }

  #contender(name: Limit | "read", pointers: readonly ArrayBufferView[], threads: number): Contender {
    const run = this.#functions[name];
    const bytes = pointers[0]!.byteLength;
    const repeats = Math.max(1, Math.floor(BYTES_PER_CALL / bytes));
    return {
      name,
      repeats,
      run: () => {
        run(...pointers, bytes, repeats, threads);
      },
    };
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

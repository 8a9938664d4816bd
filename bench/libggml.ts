/** ggml's own dequantization, from the library in the npm package `@node-llama-cpp/linux-x64`. */
import { join } from "node:path";
import { type GgmlType, ggmlTypes } from "gguf-native";
import { type KoffiLibrary, llamaBins } from "../test/support/koffi";
import { firstExisting, INSTALL_HINT, loadKoffi } from "./optional";
import type { Results } from "./results";

/** Writes the weights of `blocks` to `out`. It checks neither. */
export type LibggmlFunction = (blocks: Uint8Array, out: Float32Array) => void;

/** With a weight for each column, or without. */
export type LibggmlQuantizer = (
  numbers: Float32Array,
  out: Uint8Array,
  columns: number,
  importance: Float32Array | undefined,
) => void;

export class Libggml {
  readonly #library: KoffiLibrary;

  private constructor(library: KoffiLibrary) {
    this.#library = library;
  }

  /** The library. If something is missing: undefined, and a note in `results`. */
  static async load(results: Results): Promise<Libggml | undefined> {
    const koffi = await loadKoffi();
    const path = libraryPath();
    if (koffi === undefined || path === undefined) {
      const missing = koffi === undefined ? "koffi" : "@node-llama-cpp/linux-x64";
      results.miss(`libggml: ${missing} is not installed (${INSTALL_HINT})`);
      return undefined;
    }
    return new Libggml(koffi.load(path));
  }

  /** Makes blocks of rows of numbers; undefined for a type that is not made in this way. Checks nothing. */
  quantizer(type: GgmlType): LibggmlQuantizer | undefined {
    if (type === "Q8_K") return undefined;
    const { id } = ggmlTypes[type];
    const parameters = ["int", "void *", "void *", "int64_t", "int64_t", "int64_t", "void *"];
    const run = this.#library.func("ggml_quantize_chunk", "size_t", parameters);
    return (numbers, out, columns, importance) =>
      void run(id, numbers, out, 0, numbers.length / columns, columns, importance ?? null);
  }

  /** ggml's function for a type; undefined if it has none. */
  dequantizer(type: GgmlType): LibggmlFunction | undefined {
    try {
      const run = this.#library.func(symbol(type), "void", ["void *", "void *", "int64_t"]);
      return (blocks, out) => {
        run(blocks, out, out.length);
      };
    } catch {
      return undefined;
    }
  }
}

/** `GGUF_NATIVE_BENCH_LIBGGML` names another build of the library, such as one built with -march=native. */
export function libraryPath(): string | undefined {
  return firstExisting([process.env.GGUF_NATIVE_BENCH_LIBGGML, join(llamaBins, "libggml-base.so")]);
}

function symbol(type: GgmlType): string {
  if (type === "F16") return "ggml_fp16_to_fp32_row";
  if (type === "BF16") return "ggml_bf16_to_fp32_row";
  const name = type.endsWith("_K") ? `${type.slice(0, -2).toLowerCase()}_K` : type.toLowerCase();
  return `dequantize_row_${name}`;
}

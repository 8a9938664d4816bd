/** ggml's own products: `mul_mat` of its CPU backend, on the caller's memory. */
import { basename, dirname, join } from "node:path";
import { type GgmlType, ggmlTypes } from "gguf-native";
import { bestGgmlBuild } from "../test/support/ggml-builds";
import type { Koffi, KoffiLibrary, NativeFunction } from "../test/support/koffi";
import { libraryPath } from "./libggml";
import { INSTALL_HINT, loadKoffi } from "./optional";
import type { Results } from "./results";

export interface LibggmlProduct {
  /** Multiplies all rows with all vectors. ggml rounds the vectors first, to 8 bits for most types. */
  run(threads: number): void;
  /** Frees what ggml allocated. */
  free(): void;
}

/** Enough for the descriptions of three tensors and a graph. Their data is the caller's memory. */
const CONTEXT_BYTES = 1 << 20;
const CACHE_LINE = 64n;
const F32_ID = ggmlTypes.F32.id;

export class LibggmlCpu {
  /** The build of the backend that fits this processor and the kernels in use: "libggml-cpu-haswell.so". */
  readonly name: string;
  readonly #koffi: Koffi;
  readonly #functions: Record<keyof typeof BASE_FUNCTIONS | keyof typeof CPU_FUNCTIONS, NativeFunction>;
  readonly #backend: unknown;

  private constructor(koffi: Koffi, base: KoffiLibrary, name: string, cpu: KoffiLibrary) {
    koffi.struct("ggml_init_params", { mem_size: "size_t", mem_buffer: "void *", no_alloc: "bool" });
    this.name = name;
    this.#koffi = koffi;
    this.#functions = { ...functionsOf(base, BASE_FUNCTIONS), ...functionsOf(cpu, CPU_FUNCTIONS) };
    this.#backend = this.#functions.ggml_backend_cpu_init();
  }

  /** The backend. If something is missing: undefined, and a note in `results`. */
  static async load(results: Results): Promise<LibggmlCpu | undefined> {
    const koffi = await loadKoffi();
    const path = libraryPath();
    if (koffi === undefined || path === undefined) {
      const missing = koffi === undefined ? "koffi" : "@node-llama-cpp/linux-x64";
      results.miss(`products of libggml: ${missing} is not installed (${INSTALL_HINT})`);
      return undefined;
    }
    const name = bestGgmlBuild(koffi, dirname(path), results.machine.isa);
    if (name === undefined) {
      results.miss(`products of libggml: no libggml-cpu*.so beside ${basename(path)} fits this processor`);
      return undefined;
    }
    return new LibggmlCpu(koffi, koffi.load(path), name, koffi.load(join(dirname(path), name)));
  }

  /**
   * The product of the rows in `blocks` with the vectors in `x`, to `out`: number r of vector v goes to
   * out[v * rows + r]. All three must start at a cache line and stay in use until `free`. Undefined if ggml cannot
   * multiply the type.
   */
  product(
    type: GgmlType,
    blocks: Uint8Array,
    columns: number,
    x: Float32Array,
    out: Float32Array,
  ): LibggmlProduct | undefined {
    const ggml = this.#functions;
    const { id, blockSize, typeSize } = ggmlTypes[type];
    if (String(ggml.ggml_type_name(id)).toUpperCase() !== type || !this.#multiplies(id)) return undefined;

    const rows = blocks.length / ((columns / blockSize) * typeSize);
    const context = ggml.ggml_init({ mem_size: CONTEXT_BYTES, mem_buffer: null, no_alloc: true });
    const matrix = ggml.ggml_new_tensor_2d(context, id, columns, rows);
    const vectors = ggml.ggml_new_tensor_2d(context, F32_ID, columns, x.length / columns);
    const products = ggml.ggml_mul_mat(context, matrix, vectors);
    const graph = ggml.ggml_new_graph(context);
    ggml.ggml_build_forward_expand(graph, products);
    const placed: [tensor: unknown, memory: ArrayBufferView][] = [
      [matrix, blocks],
      [vectors, x],
      [products, out],
    ];
    const buffers = placed.map(([tensor, memory]) => {
      const address = this.#koffi.address(memory);
      // ggml would end the process.
      if (address % CACHE_LINE !== 0n) throw new Error("memory for ggml must start at a cache line");
      const buffer = ggml.ggml_backend_cpu_buffer_from_ptr(address, memory.byteLength);
      ggml.ggml_backend_tensor_alloc(buffer, tensor, address);
      return buffer;
    });
    return {
      run: (threads) => {
        ggml.ggml_backend_cpu_set_n_threads(this.#backend, threads);
        const status = ggml.ggml_backend_graph_compute(this.#backend, graph);
        if (status !== 0) throw new Error(`ggml could not multiply ${type}: status ${status}`);
      },
      free: () => {
        for (const buffer of buffers) ggml.ggml_backend_buffer_free(buffer);
        ggml.ggml_free(context);
      },
    };
  }

  /** Whether the backend has a dot product for a type: ggml itself does not check. */
  #multiplies(id: number): boolean {
    const traits = this.#functions.ggml_get_type_traits_cpu(id);
    return this.#koffi.decode(traits, POINTER_BYTES, "void *") !== null;
  }
}

/** The second field of `ggml_type_traits_cpu` is the dot product. */
const POINTER_BYTES = 8;

const BASE_FUNCTIONS = {
  ggml_init: ["void *", "ggml_init_params"],
  ggml_free: ["void", "void *"],
  ggml_type_name: ["str", "int"],
  ggml_new_tensor_2d: ["void *", "void *", "int", "int64_t", "int64_t"],
  ggml_mul_mat: ["void *", "void *", "void *", "void *"],
  ggml_new_graph: ["void *", "void *"],
  ggml_build_forward_expand: ["void", "void *", "void *"],
  ggml_backend_cpu_buffer_from_ptr: ["void *", "void *", "size_t"],
  ggml_backend_tensor_alloc: ["int", "void *", "void *", "void *"],
  ggml_backend_buffer_free: ["void", "void *"],
  ggml_backend_graph_compute: ["int", "void *", "void *"],
} as const;

const CPU_FUNCTIONS = {
  ggml_backend_cpu_init: ["void *"],
  ggml_backend_cpu_set_n_threads: ["void", "void *", "int"],
  ggml_get_type_traits_cpu: ["void *", "int"],
} as const;

/** Functions by name: first the type of the result, then those of the parameters. */
function functionsOf<Name extends string>(
  library: KoffiLibrary,
  signatures: Readonly<Record<Name, readonly [result: string, ...parameters: string[]]>>,
): Record<Name, NativeFunction> {
  const entries = Object.entries<readonly [string, ...string[]]>(signatures);
  return Object.fromEntries(
    entries.map(([name, [result, ...parameters]]) => [name, library.func(name, result, parameters)]),
  ) as Record<Name, NativeFunction>;
}

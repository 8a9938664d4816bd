/** Which kernels run on this machine. */
import { native } from "../backend/native";

/** The result of {@link cpu}. */
export interface CpuInfo {
  /**
   * The instruction set in use: `"avx512_amx"`, `"avx512"`, `"avx2_vnni"`, `"avx2"`, `"neon_i8mm"`, `"neon_dotprod"`, `"neon"`
   * or `"scalar"`; `"wasm"` for the WebAssembly module. Those with another name after theirs are `"avx512"`, `"avx2"` and
   * `"neon"` with faster products for `activations: "int8"`.
   */
  isa: string;
  /** The instruction sets that this machine can run, best first: `"scalar"` is always the last. Or only `"wasm"`. */
  available: string[];
  /** The most threads that asynchronous work uses: those that can run at once, or fewer by UV_THREADPOOL_SIZE. */
  threads: number;
}

/**
 * Tells which kernels run on this machine. The environment variable `GGUF_NATIVE_ISA`, read when the package
 * is loaded, forces one of `available`; any other value gives a process warning and is ignored.
 */
export function cpu(): CpuInfo {
  const { isa, available, threads } = native.cpu();
  return { isa, available: [...available], threads };
}

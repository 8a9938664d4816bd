/** llama.cpp itself, from the npm package `@node-llama-cpp/linux-x64` of the benchmarks, called through koffi. */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { projectRoot } from "./paths";

type Func = (...args: unknown[]) => unknown;

interface Koffi {
  load(
    path: string,
    options?: { global: boolean },
  ): { func(name: string, result: string, args: unknown[]): Func };
  struct(name: string, fields: Record<string, unknown>): unknown;
  array(type: string, length: number): unknown;
  proto(definition: string): unknown;
  pointer(type: unknown): unknown;
  register(callback: () => void, type: unknown): unknown;
  view(pointer: unknown, bytes: number): ArrayBuffer;
}

const bins = join(projectRoot, "bench", "node_modules", "@node-llama-cpp", "linux-x64", "bins", "linux-x64");

/** Why llama.cpp cannot be had here, or false: the value of `skip` of a test. */
export const noLlamaCpp: string | false =
  process.platform === "linux" && process.arch === "x64" && existsSync(bins)
    ? false
    : "llama.cpp is not installed (npm --prefix bench ci, on Linux on x86-64)";

/** Logits of several tokens: those of number `i` with `at(i)`. They are good until the next call. */
export interface Logits {
  at(i: number): Float32Array;
}

/** A model in llama.cpp, with room for `context` tokens. */
export class LlamaCpp {
  readonly #koffi: Koffi;
  readonly #call: Library["call"];
  readonly #context: unknown;
  readonly #vocabulary: unknown;
  readonly #width: number;

  private constructor({ koffi, call }: Library, path: string, context: number) {
    this.#koffi = koffi;
    this.#call = call;
    const model = this.#call(
      "llama_model_load_from_file",
      "void *",
      ["str", "llama_model_params"],
      path,
      this.#call("llama_model_default_params", "llama_model_params", []),
    );
    if (model === null) throw new Error(`llama.cpp cannot load ${path}`);
    const defaults = this.#call("llama_context_default_params", "llama_context_params", []) as object;
    const params = { ...defaults, n_ctx: context, n_batch: context };
    this.#context = this.#call(
      "llama_init_from_model",
      "void *",
      ["void *", "llama_context_params"],
      model,
      params,
    );
    // Its threads wait for each other actively: with other programs on all processors, that takes forever.
    this.setThreads(Math.max(1, Math.floor(availableParallelism() / 2)));
    this.#vocabulary = this.#call("llama_model_get_vocab", "void *", ["void *"], model);
    this.#width = this.#call("llama_vocab_n_tokens", "int", ["void *"], this.#vocabulary) as number;
  }

  static async load(path: string, context: number): Promise<LlamaCpp> {
    library ??= loadLibrary();
    return new LlamaCpp(await library, path, context);
  }

  /** The tokens of a text, with those that the model wants at the beginning; control tokens are text. */
  tokens(text: string): number[] {
    const bytes = Buffer.from(text);
    const found = new Int32Array(bytes.length + 8);
    const types = ["void *", "void *", "int", "void *", "int", "bool", "bool"];
    const args = [this.#vocabulary, bytes, bytes.length, found, found.length, true, false];
    return [...found.subarray(0, this.#call("llama_tokenize", "int", types, ...args) as number)];
  }

  isEnd(token: number): boolean {
    return this.#call("llama_vocab_is_eog", "bool", ["void *", "int"], this.#vocabulary, token) as boolean;
  }

  /** How many threads compute. Default: half of the processors. */
  setThreads(count: number): void {
    this.#call("llama_set_n_threads", "void", ["void *", "int", "int"], this.#context, count, count);
  }

  /** Forgets all tokens. */
  clear(): void {
    const memory = this.#call("llama_get_memory", "void *", ["void *"], this.#context);
    this.#call("llama_memory_clear", "void", ["void *", "bool"], memory, true);
  }

  /** The logits after each token of a text, which it reads from the beginning. */
  read(tokens: readonly number[]): Logits {
    this.clear();
    this.#decode(tokens, new Int8Array(tokens.length).fill(1));
    return { at: (i) => this.#logits(i) };
  }

  /** Reads tokens that follow those before. Returns the logits after the last one, good until the next call. */
  forward(tokens: readonly number[]): Float32Array {
    const last = tokens.length - 1;
    this.#decode(tokens, new Int8Array(tokens.length).fill(1, last));
    return this.#logits(last);
  }

  /** Reads tokens. `wanted` has a 1 for each of them whose logits are computed. */
  #decode(tokens: readonly number[], wanted: Int8Array): void {
    const batch = {
      n_tokens: tokens.length,
      token: Int32Array.from(tokens),
      ...{ embd: null, pos: null, n_seq_id: null, seq_id: null },
      logits: wanted,
    };
    const status = this.#call("llama_decode", "int", ["void *", "llama_batch"], this.#context, batch);
    if (status !== 0) throw new Error(`llama_decode: ${status}`);
  }

  /** The logits after token number `i` of the last call. */
  #logits(i: number): Float32Array {
    const pointer = this.#call("llama_get_logits_ith", "void *", ["void *", "int"], this.#context, i);
    return new Float32Array(this.#koffi.view(pointer, 4 * this.#width));
  }
}

interface Library {
  koffi: Koffi;
  /** Calls a function by its name, type of its result and types of its arguments. */
  call(name: string, result: string, types: unknown[], ...args: unknown[]): unknown;
}

/** koffi knows a type once in a process. */
let library: Promise<Library> | undefined;

async function loadLibrary(): Promise<Library> {
  const { load } = (await import(pathToFileURL(join(projectRoot, "bench", "load.mjs")).href)) as {
    load(name: string): Promise<{ default: Koffi }>;
  };
  const { default: koffi } = await load("koffi");
  const open = (name: string) => koffi.load(join(bins, name), { global: true });
  defineTypes(koffi);
  const logger = koffi.pointer("llama_log");
  const quiet = koffi.register(() => {}, logger);
  open("libggml-base.so").func("ggml_log_set", "void", [logger, "void *"])(quiet, null);
  open("libggml.v0.5.0.so").func("ggml_backend_load_all_from_path", "void", ["str"])(bins);
  const llama = open("libllama.v0.5.0.so");
  const functions = new Map<string, Func>();
  const call: Library["call"] = (name, result, types, ...args) => {
    const known = functions.get(name) ?? llama.func(name, result, types);
    functions.set(name, known);
    return known(...args);
  };
  call("llama_log_set", "void", [logger, "void *"], quiet, null);
  return { koffi, call };
}

/** Structures as of llama.cpp 0.5.0. Parameters are only passed on, but for the first of a context's. */
function defineTypes(koffi: Koffi): void {
  koffi.proto("void llama_log(int, const char *, void *)");
  koffi.struct("llama_model_params", { fields: koffi.array("uint64_t", 32) });
  koffi.struct("llama_context_params", {
    ...{ n_ctx: "uint32_t", n_batch: "uint32_t", n_ubatch: "uint32_t" },
    fields: koffi.array("uint32_t", 81),
  });
  const pointers = ["token", "embd", "pos", "n_seq_id", "seq_id", "logits"];
  koffi.struct("llama_batch", {
    n_tokens: "int32_t",
    ...Object.fromEntries(pointers.map((name) => [name, "void *"])),
  });
}

/** llama.cpp itself, from the npm package `@node-llama-cpp/linux-x64` of the benchmarks, called through koffi. */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cpu } from "gguf-native";
import { bestGgmlBuild } from "./ggml-builds";
import { llamaBins as bins, type Koffi, loadKoffi, type NativeFunction } from "./koffi";

/** Why llama.cpp cannot be had here, or false: the value of `skip` of a test. */
export const noLlamaCpp: string | false =
  process.platform === "linux" && process.arch === "x64" && existsSync(bins)
    ? false
    : "llama.cpp is not installed (npm --prefix bench install, on Linux on x86-64)";

/** Logits of several tokens: those of number `i` with `at(i)`. They are good until the next call. */
export interface Logits {
  at(i: number): Float32Array;
}

/** The vocabulary of a model in llama.cpp. */
export class LlamaVocabulary {
  readonly #call: Library["call"];
  readonly #vocabulary: unknown;
  /** The number of tokens. */
  readonly size: number;

  constructor(call: Library["call"], model: unknown) {
    this.#call = call;
    this.#vocabulary = call("llama_model_get_vocab", "void *", ["void *"], model);
    this.size = call("llama_vocab_n_tokens", "int", ["void *"], this.#vocabulary) as number;
  }

  /** The tokens of a text, with those that the model wants around it; control tokens are text unless `special`. */
  tokens(text: string, special = false): number[] {
    const bytes = Buffer.from(text);
    // A space may be three tokens, of bytes.
    const found = new Int32Array(3 * bytes.length + 8);
    const types = ["void *", "void *", "int", "void *", "int", "bool", "bool"];
    const args = [this.#vocabulary, bytes, bytes.length, found, found.length, true, special];
    return [...found.subarray(0, this.#call("llama_tokenize", "int", types, ...args) as number)];
  }

  isEnd(token: number): boolean {
    return this.#call("llama_vocab_is_eog", "bool", ["void *", "int"], this.#vocabulary, token) as boolean;
  }
}

/** Does something with the vocabulary of a file, of which nothing else is loaded. */
export async function withLlamaVocabulary(path: string, use: (vocabulary: LlamaVocabulary) => void): Promise<void> {
  const { call } = await loaded();
  const params = modelParams(call);
  params.fields[VOCABULARY_ONLY] = BigInt(params.fields[VOCABULARY_ONLY] as bigint) | 1n;
  const model = loadModel(call, path, params);
  use(new LlamaVocabulary(call, model));
  call("llama_model_free", "void", ["void *"], model);
}

/** The vectors that a matrix is multiplied with, one after the other. */
type Observer = (name: string, columns: number, vectors: Float32Array) => void;

/** Reads some tokens at once. `observe` is told of every product with a matrix of the model. */
export async function observeProducts(path: string, tokens: readonly number[], observe: Observer): Promise<void> {
  const { koffi } = await loaded();
  const callback = (pointer: unknown, asks: boolean): boolean => {
    const operation = new Tensor(koffi, pointer);
    if (asks) return operation.isProduct && operation.source(0).name.startsWith("blk.");
    const vectors = operation.source(1);
    observe(operation.source(0).name, vectors.columns, vectors.numbers);
    return true;
  };
  const registered = koffi.register(callback, koffi.pointer("llama_eval_callback"));
  const llama = await LlamaCpp.load(path, tokens.length, { observer: koffi.address(registered) });
  llama.read(tokens);
}

/** `GGML_OP_MUL_MAT`. */
const MATRIX_PRODUCT = 29;

/** A `ggml_tensor`. */
class Tensor {
  readonly #koffi: Koffi;
  readonly #fields: DataView;

  constructor(koffi: Koffi, pointer: unknown) {
    this.#koffi = koffi;
    this.#fields = new DataView(koffi.view(pointer, 336));
  }

  get isProduct(): boolean {
    return this.#fields.getInt32(80, true) === MATRIX_PRODUCT;
  }

  source(i: number): Tensor {
    return new Tensor(this.#koffi, this.#fields.getBigUint64(152 + 8 * i, true));
  }

  get columns(): number {
    return Number(this.#fields.getBigInt64(16, true));
  }

  /** Those of a tensor of type F32 that is contiguous. */
  get numbers(): Float32Array {
    const length = [16, 24, 32, 40].reduce((n, at) => n * Number(this.#fields.getBigInt64(at, true)), 1);
    return new Float32Array(this.#koffi.view(this.#fields.getBigUint64(248, true), 4 * length));
  }

  get name(): string {
    const bytes = Array.from({ length: 64 }, (_, i) => this.#fields.getUint8(256 + i));
    return Buffer.from(bytes.slice(0, bytes.indexOf(0))).toString();
  }
}

/** The number of the field of `llama_model_params` whose first byte is `vocab_only`. */
const VOCABULARY_ONLY = 9;

/** In the arrays of `llama_context_params`: `pooling_type` of `fields`, and that whose first byte is `embeddings` of `more`. */
const POOLING = 8;
const EMBEDDINGS = 8;

type ModelParams = Record<"fields", (number | bigint)[]>;
type ContextParams = Record<"fields" | "more", number[]>;

function modelParams(call: Library["call"]): ModelParams {
  return call("llama_model_default_params", "llama_model_params", []) as ModelParams;
}

function loadModel(call: Library["call"], path: string, params: ModelParams): unknown {
  const types = ["str", "llama_model_params"];
  const model = call("llama_model_load_from_file", "void *", types, path, params);
  if (model === null) throw new Error(`llama.cpp cannot load ${path}`);
  return model;
}

interface LlamaCppOptions {
  /** The address of a function that is called for every operation. */
  observer?: bigint;
  /** The files of LoRA adapters, and how much is added of each. */
  adapters?: readonly { path: string; scale: number }[];
  /** For vectors of texts: the number of how those of tokens become one, or -1 for the model's own. */
  pooling?: number | undefined;
}

/** A model in llama.cpp, with room for `context` tokens. */
export class LlamaCpp {
  readonly #koffi: Koffi;
  readonly #call: Library["call"];
  readonly #context: unknown;
  readonly vocabulary: LlamaVocabulary;
  /** The build of ggml that multiplies: "libggml-cpu-haswell.so". */
  readonly build: string;

  private constructor({ koffi, call, build }: Library, path: string, context: number, options: LlamaCppOptions) {
    const { observer = 0n, adapters = [], pooling } = options;
    this.#koffi = koffi;
    this.#call = call;
    this.build = build;
    const model = loadModel(call, path, modelParams(call));
    const loaded = adapters.map(({ path }) =>
      koffi.address(call("llama_adapter_lora_init", "void *", ["void *", "str"], model, path)),
    );
    const defaults = call("llama_context_default_params", "llama_context_params", []) as ContextParams;
    if (pooling !== undefined) {
      defaults.fields[POOLING] = pooling >>> 0;
      defaults.more[EMBEDDINGS] = 1 | (defaults.more[EMBEDDINGS] as number);
    }
    const params = { ...defaults, n_ctx: context, n_batch: context, cb_eval: observer };
    this.#context = this.#call("llama_init_from_model", "void *", ["void *", "llama_context_params"], model, params);
    this.#call(
      ...["llama_set_adapters_lora", "int", ["void *", "void *", "size_t", "void *"], this.#context],
      ...[BigUint64Array.from(loaded), loaded.length, Float32Array.from(adapters, ({ scale }) => scale)],
    );
    // Its threads wait for each other actively: with other programs on all processors, that takes forever.
    this.setThreads(Math.max(1, Math.floor(availableParallelism() / 2)));
    this.vocabulary = new LlamaVocabulary(call, model);
  }

  static async load(path: string, context: number, options: LlamaCppOptions = {}): Promise<LlamaCpp> {
    return new LlamaCpp(await loaded(), path, context, options);
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

  /** The vector of `length` numbers that an embedder makes of a text, or what a reranker says of it. */
  embed(tokens: readonly number[], length: number): Float32Array {
    this.clear();
    this.#decode(tokens, new Int8Array(tokens.length).fill(1));
    // Of a model that does not say how vectors of tokens become one, the last.
    const ask = (of: string, i: number) =>
      this.#call(`llama_get_embeddings_${of}`, "void *", ["void *", "int"], this.#context, i);
    return new Float32Array(this.#koffi.view(ask("seq", 0) ?? ask("ith", -1), 4 * length));
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
    return new Float32Array(this.#koffi.view(pointer, 4 * this.vocabulary.size));
  }
}

/** Options of {@link llamaQuantize}. */
export interface LlamaQuantizeOptions {
  /** The number of the mix. */
  fileType: number;
  /** Weights of importance by the name of the tensor. */
  importance?: Readonly<Record<string, Float32Array>>;
  /** Types of tensors by regular expressions of their names. */
  types?: Readonly<Record<string, number>>;
  allowRequantize?: boolean;
  /** Only says what it would do. */
  dryRun?: boolean;
}

/** llama.cpp's own quantization of a model: whether it succeeded, and all that it said. */
export async function llamaQuantize(
  input: string,
  output: string,
  { fileType, importance, types, allowRequantize = false, dryRun = false }: LlamaQuantizeOptions,
): Promise<{ isDone: boolean; log: string }> {
  const { call, log } = await loaded();
  const defaults = call("llama_model_quantize_default_params", "llama_model_quantize_params", []) as object;
  const entries = Object.entries(importance ?? {});
  const none = { name: null, data: null, size: 0 };
  const patterns = Object.entries(types ?? {}).map(([pattern, type]) => ({ pattern, type }));
  const params = {
    ...{ ...defaults, ftype: fileType, nthread: 1, allow_requantize: allowRequantize, dry_run: dryRun },
    imatrix:
      importance === undefined ? null : [...entries.map(([name, data]) => ({ name, data, size: data.length })), none],
    tt_overrides: types === undefined ? null : [...patterns, { pattern: null, type: 0 }],
  };
  log.length = 0;
  const parameters = ["str", "str", "llama_model_quantize_params *"];
  const status = call("llama_model_quantize", "uint32_t", parameters, input, output, params);
  return { isDone: status === 0, log: log.join("") };
}

/** Pieces of what llama.cpp says that are kept. */
const MOST_LOGGED = 100_000;

interface Library {
  koffi: Koffi;
  /** The file of the backend that it uses. */
  build: string;
  /** What it has said lately, in pieces of lines. */
  log: string[];
  /** Calls a function by its name, type of its result and types of its arguments. */
  call(name: string, result: string, types: unknown[], ...args: unknown[]): unknown;
}

/** koffi knows a type once in a process. */
let library: Promise<Library> | undefined;

function loaded(): Promise<Library> {
  library ??= loadLibrary();
  return library;
}

async function loadLibrary(): Promise<Library> {
  const koffi = await loadKoffi();
  const open = (name: string) => koffi.load(join(bins, name), { global: true });
  defineTypes(koffi);
  const logger = koffi.pointer("llama_log");
  const log: string[] = [];
  const quiet = koffi.register((_level, text) => {
    log.push(text);
    if (log.length > MOST_LOGGED) log.shift();
  }, logger);
  open("libggml-base.so").func("ggml_log_set", "void", [logger, "void *"])(quiet, null);
  const ggml = open("libggml.v0.5.0.so");
  const build = bestGgmlBuild(koffi, bins, cpu().isa);
  if (build === undefined) throw new Error("no build of ggml fits this processor");
  ggml.func("ggml_backend_load", "void *", ["str"])(join(bins, build));
  const llama = open("libllama.v0.5.0.so");
  const functions = new Map<string, NativeFunction>();
  const call: Library["call"] = (name, result, types, ...args) => {
    const known = functions.get(name) ?? llama.func(name, result, types);
    functions.set(name, known);
    return known(...args);
  };
  call("llama_log_set", "void", [logger, "void *"], quiet, null);
  return { koffi, call, build, log };
}

/** Structures as of llama.cpp 0.5.0. Parameters are only passed on, but for the first of a context's. */
function defineTypes(koffi: Koffi): void {
  koffi.proto("void llama_log(int, const char *, void *)");
  koffi.proto("bool llama_eval_callback(void *, bool, void *)");
  koffi.struct("llama_model_params", { fields: koffi.array("uint64_t", 32) });
  koffi.struct("llama_context_params", {
    ...{ n_ctx: "uint32_t", n_batch: "uint32_t", n_ubatch: "uint32_t" },
    fields: koffi.array("uint32_t", 19),
    cb_eval: "uint64_t",
    more: koffi.array("uint32_t", 60),
  });
  koffi.struct("llama_model_imatrix_data", { name: "const char *", data: "float *", size: "size_t" });
  koffi.struct("llama_model_tensor_override", { pattern: "const char *", type: "int" });
  const bools = ["allow_requantize", "quantize_output_tensor", "only_copy", "pure", "keep_split", "dry_run"];
  koffi.struct("llama_model_quantize_params", {
    ...{ nthread: "int32_t", ftype: "int", output_tensor_type: "int", token_embedding_type: "int" },
    ...Object.fromEntries(bools.map((name) => [name, "bool"])),
    ...{ imatrix: "llama_model_imatrix_data *", kv_overrides: "void *" },
    ...{ tt_overrides: "llama_model_tensor_override *", prune_layers: "void *", max_buf_size: "size_t" },
  });
  const pointers = ["token", "embd", "pos", "n_seq_id", "seq_id", "logits"];
  koffi.struct("llama_batch", {
    n_tokens: "int32_t",
    ...Object.fromEntries(pointers.map((name) => [name, "void *"])),
  });
}

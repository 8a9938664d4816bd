/** Importance matrices of llama.cpp: how much each column of a matrix of weights matters, as texts have shown. */
import { endianness } from "node:os";
import { GgufError } from "../base/errors";
import { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { checkPath } from "../file/open";
import { RemoteGgufFile } from "../file/remote-file";
import { numberOf } from "../file/scalars";
import { checkUnchanged } from "../file/unchanged";
import { FileSource } from "../source/file";
import { beginsAsGguf } from "../source/source";
import { checkInputs, closeInputs, openInputs } from "../writer/input-file";

/** The most entries, and bytes of a name, that are believed. */
const MOST_ENTRIES = 2 ** 16;
const MOST_NAME_BYTES = 2 ** 16;

/** How tensors of an importance matrix are called: sums of squares, and of how many. */
const SUMS = ".in_sum2";
const COUNTS = ".counts";

/** The sums of one tensor of a model, and where they are. */
interface Entry {
  /** Numbers in all: its columns, for each of its matrices. */
  readonly count: number;
  /** So many matrices have a count of their own. */
  readonly matrices: number;
  /** Sums `start` to `end`. */
  readonly sums: (start: number, end: number, signal?: AbortSignal) => Promise<Float32Array>;
  /** Of how many each matrix is the sum. */
  readonly counts: () => Promise<ArrayLike<number>>;
}

/** An importance matrix of either format. */
interface Contents {
  readonly path: string | undefined;
  readonly datasets: readonly string[];
  readonly chunkCount: number;
  readonly entries: ReadonlyMap<string, Entry>;
  readonly files: OpenedFiles;
}

/** What was opened for it. */
interface OpenedFiles {
  readonly check: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** The tensor whose weights are asked for. */
interface Target {
  readonly name: string;
  readonly shape: readonly number[];
}

/** The weights of importance of a tensor: those of the columns of each of its matrices, such as one for each expert. */
export interface ColumnWeights {
  of(matrix: number, signal?: AbortSignal): Promise<Float32Array>;
}

/**
 * An open importance matrix: a GGUF file that `llama-imatrix` writes, or one of its older format (`.dat`). What it holds is
 * read when it is asked for, since those of large models have gigabytes.
 */
export class ImportanceMatrix {
  /** Its file, as it was named; undefined for bytes in memory. */
  readonly path: string | undefined;
  /** The texts that it was made with, as far as it says. */
  readonly datasets: readonly string[];
  /** How many pieces of these it is of; 0 where it does not say. */
  readonly chunkCount: number;
  readonly #entries: ReadonlyMap<string, Entry>;
  readonly #files: OpenedFiles;

  private constructor({ path, datasets, chunkCount, entries, files }: Contents) {
    this.path = path;
    this.datasets = datasets;
    this.chunkCount = chunkCount;
    this.#entries = entries;
    this.#files = files;
  }

  /**
   * @param source a path, or a model that is open and stays so
   * @throws TypeError for anything else
   * @throws GgufError as `open`; ERR_GGUF_INVALID for what is no importance matrix; ERR_GGUF_TRUNCATED
   */
  static async open(source: string | URL | GgufModel): Promise<ImportanceMatrix> {
    if (source instanceof GgufModel) {
      const stays = { check: () => checkUnchanged(source), close: async () => undefined };
      return new ImportanceMatrix(await contentsOfModel(source, stays));
    }
    const file = await FileSource.open(checkPath(source));
    let files: OpenedFiles = file;
    try {
      if (!(await beginsAsGguf(file))) return new ImportanceMatrix(await contentsOfOldFormat(file));
      const inputs = await openInputs(file);
      files = { check: () => checkInputs(inputs), close: () => closeInputs(inputs) };
      return new ImportanceMatrix(await contentsOfModel(RemoteGgufFile.of(inputs), files));
    } catch (error) {
      await files.close();
      throw error;
    }
  }

  /** How many tensors it knows. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * The weights of a tensor's columns; undefined where the matrix has none.
   * @throws GgufError ERR_GGUF_INVALID where it has them for a tensor of another shape
   */
  weights({ name, shape }: Target): ColumnWeights | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    const columns = shape[0] as number;
    const matrices = shape[2] ?? 1;
    if (entry.count !== columns * matrices) {
      // Embeddings are rows that are looked up: what is counted there means nothing.
      if (name === "token_embd.weight" || name === "per_layer_token_embd.weight") return undefined;
      const detail = `it has ${entry.count} weights for this tensor, which has ${columns} columns in ${matrices} matrices: is it of this model?`;
      throw this.#invalid(name, detail);
    }
    return { of: (matrix, signal) => this.#read(name, entry, columns, matrix, signal) };
  }

  async #read(
    name: string,
    entry: Entry,
    columns: number,
    matrix: number,
    signal: AbortSignal | undefined,
  ): Promise<Float32Array> {
    const start = matrix * columns;
    const [sums, counts] = await Promise.all([entry.sums(start, start + columns, signal), entry.counts()]);
    const perCount = entry.count / entry.matrices;
    for (let i = 0; i < columns; i++) {
      const count = counts[Math.floor((start + i) / perCount)] as number;
      const sum = sums[i] as number;
      // Of a matrix that no text has used nothing is known: all its columns count the same.
      const weight = count > 0 ? Math.fround(sum / count) : 1;
      if (!(weight >= 0 && weight < Number.POSITIVE_INFINITY)) {
        throw this.#invalid(name, `its weights must be finite and not negative, found ${weight} for column ${i}`);
      }
      sums[i] = weight;
    }
    return sums;
  }

  #invalid(tensor: string, detail: string): GgufError {
    return new GgufError("ERR_GGUF_INVALID", detail, { path: this.path, tensor });
  }

  /** Checks that its file is what it was when it was opened. @throws GgufError ERR_GGUF_CHANGED */
  async check(): Promise<void> {
    await this.#files.check();
  }

  /** Closes what {@link open} has opened. */
  async close(): Promise<void> {
    await this.#files.close();
  }
}

async function contentsOfModel(model: GgufModel, files: OpenedFiles): Promise<Contents> {
  const path = model.paths[0];
  const invalid = (detail: string, tensor?: string): GgufError =>
    new GgufError("ERR_GGUF_INVALID", detail, { path, tensor });
  const entries = new Map<string, Entry>();
  for (const [name, sums] of model.tensors) {
    if (!name.endsWith(SUMS)) continue;
    const base = name.slice(0, -SUMS.length);
    const counts = model.tensors.get(base + COUNTS);
    if (counts === undefined) throw invalid(`there is no tensor '${base + COUNTS}' beside it`, name);
    for (const each of [sums, counts]) {
      if (each.type !== "F32") throw invalid(`it must be of type F32, not ${each.type}`, each.name);
    }
    const count = sums.elementCount;
    const matrices = counts.elementCount;
    if (matrices < 1 || count < 1 || count % matrices !== 0) {
      throw invalid(`its ${count} sums cannot be those of ${matrices} matrices with as many columns each`, name);
    }
    if (entries.size === MOST_ENTRIES) throw invalid(`it has more than ${MOST_ENTRIES} entries`);
    entries.set(base, {
      ...{ count, matrices },
      sums: (start, end, signal) => sums.dequantize({ start, end, ...(signal === undefined ? {} : { signal }) }),
      counts: once(() => wholeCounts(counts)),
    });
  }
  if (entries.size === 0) {
    throw invalid(`it is no importance matrix: no tensor's name ends in '${SUMS}'`);
  }
  const { metadata } = model;
  const type = metadata.typeOf("imatrix.datasets");
  const hasDatasets = type?.type === "array" && type.elementType === "string" && type.length <= MOST_ENTRIES;
  const datasets = hasDatasets ? (metadata.strings("imatrix.datasets") ?? []) : [];
  return { path, datasets, chunkCount: numberOf(metadata, "imatrix.chunk_count") ?? 0, entries, files };
}

async function wholeCounts(counts: GgufModelTensor): Promise<ArrayLike<number>> {
  return (await counts.dequantize()).map(Math.round);
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/**
 * The older format, little-endian: the number of entries; of each the length of its name, the name, how often it was added
 * to, how many numbers it has, and these; then, where it does not end, the number of pieces of text, the length of a name,
 * and the name of the text. All numbers are int32, the sums float32.
 */
async function contentsOfOldFormat(file: FileSource): Promise<Contents> {
  const { path, byteLength } = file;
  let at = 0;
  const take = async (length: number): Promise<Buffer> => {
    const bytes = Buffer.alloc(length);
    if ((await file.read(at, bytes)) < length) {
      const detail = `it ends in the middle of an importance matrix, at byte ${byteLength}`;
      throw new GgufError("ERR_GGUF_TRUNCATED", detail, { path, offset: at });
    }
    at += length;
    return bytes;
  };
  const takeCount = async (what: string, least: number, most: number): Promise<number> => {
    const offset = at;
    const count = (await take(4)).readInt32LE();
    if (count >= least && count <= most) return count;
    const detail = `it is no importance matrix: ${what} must be from ${least} to ${most}, found ${count}`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path, offset });
  };
  const entries = new Map<string, Entry>();
  const entryCount = await takeCount("the number of entries", 1, MOST_ENTRIES);
  for (let i = 0; i < entryCount; i++) {
    const name = (await take(await takeCount("the length of a name", 1, MOST_NAME_BYTES))).toString();
    const calls = await takeCount("how often it was added to", 0, 2 ** 31 - 1);
    const count = await takeCount("the number of sums", 1, Math.floor(byteLength / 4));
    const begin = at;
    at += 4 * count;
    const sums = async (start: number, end: number, signal?: AbortSignal): Promise<Float32Array> => {
      const numbers = new Float32Array(end - start);
      const bytes = Buffer.from(numbers.buffer);
      await file.read(begin + 4 * start, bytes, signal);
      if (endianness() === "BE") bytes.swap32();
      return numbers;
    };
    // Where nothing was added, the sums are taken as they are.
    entries.set(name, { count, matrices: 1, sums, counts: async () => [calls || 1] });
  }
  // The end of the last sums must be there.
  at -= 4;
  await take(4);
  if (at === byteLength) return { path, datasets: [], chunkCount: 0, entries, files: file };
  const chunkCount = await takeCount("the number of pieces", 0, 2 ** 31 - 1);
  const length = at === byteLength ? 0 : await takeCount("the length of the name of a text", 0, MOST_NAME_BYTES);
  const datasets = length === 0 ? [] : [(await take(length)).toString()];
  return { path, datasets, chunkCount, entries, files: file };
}

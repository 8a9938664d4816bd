/** Tensors on their way from one type to another: a piece of rows at a time, several at once. */
import { native } from "../backend/native";
import { errorAbout, GgufError, type GgufErrorSubject } from "../base/errors";
import type { ThreadOptions } from "../base/options";
import { type ElementRange, partsOf } from "../base/ranges";
import { type GgmlType, ggmlTypes } from "../base/types";
import { runJob } from "../decode/jobs";
import { allocateArray } from "../decode/memory";
import { explainFailure } from "../decode/request";
import { comparisonOf, noTotals, type TensorComparison } from "../file/comparison";
import type { GgufModelTensor } from "../file/model-tensor";
import { quantize } from "../quantize/quantize";
import type { QuantizableType, QuantizeOptions } from "../quantize/request";
import type { ColumnWeights } from "./importance-matrix";

/** A tensor that gets another type. */
export interface EncodedTensor {
  readonly tensor: GgufModelTensor;
  readonly to: GgmlType;
  readonly weights: ColumnWeights | undefined;
}

/** Numbers of a piece, where a row is not longer. */
const PIECE_NUMBERS = 2 ** 20;

/** Pieces that are read, decoded and encoded at a time, the one that is being written included. */
const AT_A_TIME = 3;

/** Rows of one matrix of a tensor; without importance a long row may be in several pieces. */
interface Piece {
  readonly of: EncodedTensor;
  readonly start: number;
  readonly end: number;
  readonly matrix: number;
}

/** A piece that is done. */
interface DonePiece {
  readonly numbers: Float32Array;
  readonly blocks: Uint8Array;
}

/**
 * Encodes tensors in the order given, ahead of whoever takes them: while the blocks of one piece are written, the next ones
 * are read, decoded and encoded, also those of the next tensor.
 */
export class Encoder {
  readonly #todo: Iterator<Piece, undefined>;
  readonly #signal: AbortSignal;
  readonly #how: Pick<QuantizeOptions, "search"> & ThreadOptions;
  readonly #longest: number;
  readonly #slots: Float32Array[] = [];
  readonly #underWay: Promise<DonePiece>[] = [];
  readonly #weights = new WeakMap<EncodedTensor, { matrix: number; weights: Promise<Float32Array> }>();
  #begun = 0;
  #lastEncoded: Promise<unknown> = Promise.resolve();

  /**
   * @param signal aborts what is under way
   * @param how by which search, and how many threads at most
   */
  constructor(
    tensors: readonly EncodedTensor[],
    signal: AbortSignal,
    how: Pick<QuantizeOptions, "search"> & ThreadOptions,
  ) {
    this.#todo = allPieces(tensors);
    this.#signal = signal;
    this.#how = how;
    this.#longest = tensors.reduce((longest, each) => Math.max(longest, pieceLength(each)), 0);
  }

  /**
   * The blocks of the next tensor, which must be `tensor`, in pieces that are good until the next one is taken.
   * @param done is told how far they are from the numbers; where it is absent, they are not compared
   */
  async *blocks(
    each: EncodedTensor,
    done?: (error: TensorComparison) => void,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    let totals: Float64Array = noTotals();
    for (const _ of piecesOf(each)) {
      this.#fill();
      const { numbers, blocks } = await (this.#underWay[0] as Promise<DonePiece>);
      if (done !== undefined) totals = await this.#compare(each, numbers, blocks, totals);
      yield blocks;
      this.#underWay.shift();
    }
    done?.(comparisonOf(totals, false));
  }

  /** Settles once nothing is under way any more, whether that has failed or not. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  #fill(): void {
    while (this.#underWay.length < AT_A_TIME) {
      const piece = this.#todo.next().value;
      if (piece === undefined) return;
      const done = this.#encode(piece, this.#slot(this.#begun++ % AT_A_TIME));
      done.catch(() => undefined); // reported when it is awaited, if it still is
      this.#underWay.push(done);
    }
  }

  /** Memory for the numbers of a piece. */
  #slot(i: number): Float32Array {
    this.#slots[i] ??= allocateArray(this.#longest);
    return this.#slots[i];
  }

  async #encode({ of, start, end, matrix }: Piece, slot: Float32Array): Promise<DonePiece> {
    const signal = this.#signal;
    const numbers = slot.subarray(0, end - start);
    const [importance] = await Promise.all([
      this.#importance(of, matrix),
      of.tensor.dequantize({ start, end, out: numbers, signal, threads: this.#how.threads }),
    ]);
    const columns = Math.min(of.tensor.shape[0] as number, numbers.length);
    const options = { columns, importance, signal, ...this.#how };
    const blocks = await this.#inTurn(() => quantize(of.to as QuantizableType, numbers, options)).catch(
      (error: unknown) => {
        if (!(error instanceof GgufError)) throw error;
        const found = error.code === "ERR_GGUF_RANGE" ? notFinite(of, start, numbers) : undefined;
        throw found ?? errorAbout(error, subjectOf(of));
      },
    );
    return { numbers, blocks };
  }

  /** Pieces are encoded one after the other where threads are limited: each takes as many. */
  #inTurn(encode: () => Promise<Uint8Array>): Promise<Uint8Array> {
    if (this.#how.threads === undefined) return encode();
    const encoded = this.#lastEncoded.then(encode);
    this.#lastEncoded = encoded.catch(() => undefined);
    return encoded;
  }

  /** The weights of one matrix, of which several pieces follow each other. */
  async #importance(of: EncodedTensor, matrix: number): Promise<Float32Array | undefined> {
    if (of.weights === undefined) return undefined;
    let known = this.#weights.get(of);
    if (known?.matrix !== matrix) {
      known = { matrix, weights: of.weights.of(matrix, this.#signal) };
      this.#weights.set(of, known);
    }
    return known.weights;
  }

  #compare(of: EncodedTensor, numbers: Float32Array, blocks: Uint8Array, totals: Float64Array): Promise<Float64Array> {
    const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
    return runJob(
      { signal: this.#signal, threads: this.#how.threads },
      (...how) => native.compareBlocksAsync(ggmlTypes.F32.id, bytes, ggmlTypes[of.to].id, blocks, 0, totals, ...how),
      (error) => explainFailure(error, numbers.length, subjectOf(of)),
    );
  }
}

function subjectOf({ tensor }: EncodedTensor): GgufErrorSubject {
  return { path: tensor.path, tensor: tensor.name };
}

/** What is wrong with numbers of a tensor, from number `start` on, that no block can hold; undefined if all are finite. */
function notFinite(of: EncodedTensor, start: number, numbers: Float32Array): GgufError | undefined {
  const found = numbers.findIndex((x) => !Number.isFinite(x));
  if (found === -1) return undefined;
  const at = start + found;
  const columns = of.tensor.shape[0] as number;
  const place = `number ${at} (row ${Math.floor(at / columns)}, column ${at % columns})`;
  const detail = `${place} is ${numbers[found]}, which ${of.to} blocks cannot hold`;
  return new GgufError("ERR_GGUF_RANGE", detail, subjectOf(of));
}

function* allPieces(tensors: readonly EncodedTensor[]): Generator<Piece, undefined, undefined> {
  for (const each of tensors) yield* piecesOf(each);
}

function* piecesOf(of: EncodedTensor): Generator<Piece, void, undefined> {
  const { shape, elementCount } = of.tensor;
  const piece = ({ start, end }: ElementRange, matrix: number): Piece => ({ of, start, end, matrix });
  const length = pieceLength(of);
  if (of.weights === undefined) {
    for (const part of partsOf(0, elementCount, length)) yield piece(part, 0);
    return;
  }
  const size = (shape[0] as number) * (shape[1] ?? 1);
  for (let matrix = 0; matrix * size < elementCount; matrix++) {
    const parts = partsOf(matrix * size, (matrix + 1) * size, length);
    // A fourth dimension has no weights of its own.
    for (const part of parts) yield piece(part, matrix % (shape[2] ?? 1));
  }
}

/** Numbers of a piece: whole rows, unless a row alone has more and nothing depends on where it begins. */
function pieceLength({ tensor, weights }: EncodedTensor): number {
  const columns = tensor.shape[0] as number;
  if (columns > PIECE_NUMBERS && weights === undefined) return PIECE_NUMBERS;
  const rows = Math.max(1, Math.floor(PIECE_NUMBERS / Math.max(1, columns)));
  return Math.min(Math.max(1, tensor.elementCount), rows * columns);
}

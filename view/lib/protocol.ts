/** What the page asks its worker, and what that answers. Text in it comes from files, and is escaped and cut already. */

import type { TensorComparison, TensorStats } from "gguf-native";
import type { MemoryUse } from "#dist/describe/memory";
import type { TensorTable } from "#dist/describe/tensor-table";
import type { TypeTotal } from "#dist/describe/type-totals";
import type { Picture } from "./averages";
import type { BlockScale, BlockView } from "./block-scales";
import type { Conversation, TemplateTask } from "./chat-template";
import type { Measured } from "./pairs";
import type { TextTokens } from "./text-tokens";

/** Where a model is: a URL, or the files that were chosen. */
export type ModelSource = { readonly url: string } | { readonly files: readonly File[] };

/** A metadata key: its declared type, and the start of its value. */
export interface MetadataRow {
  readonly key: string;
  readonly type: string;
  readonly text: string;
}

/** An open model. */
export interface ModelView {
  readonly id: number;
  /** The name of the file. */
  readonly name: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly types: readonly (readonly [type: string, total: TypeTotal])[];
  readonly metadata: readonly MetadataRow[];
  readonly tensors: TensorTable;
  /** How many tokens the vocabulary has; 0 without one. */
  readonly tokenCount: number;
  /** How many tokens it was made for; null where the file does not say. */
  readonly contextLength: number | null;
  /** That the file is cut off, in a sentence. */
  readonly warning?: string;
}

/** A metadata value, or a page of it. */
export type ValueView =
  | { readonly kind: "text"; readonly text: string; readonly byteLength: number; readonly isCut: boolean }
  | {
      readonly kind: "array";
      readonly first: number;
      readonly elements: readonly string[];
      readonly length: number;
    };

/** The tokens of a vocabulary, in columns. */
export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly types: readonly (string | undefined)[];
  readonly scores: readonly (number | undefined)[];
  /** How many there are, shown or not. */
  readonly count: number;
}

/** What a chat template makes of a conversation. */
export interface RenderedTemplate {
  readonly text: string;
  readonly isCut: boolean;
}

/** A tensor of an open model. */
export interface TensorAddress {
  readonly model: number;
  /** Its number in the order of the file. */
  readonly tensor: number;
}

/** Some rows and columns of a tensor. */
export interface ValuesView {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly row: number;
  readonly column: number;
  readonly values: readonly Float32Array[];
}

/** A part of a tensor as a matrix. */
export interface Region {
  readonly row: number;
  readonly column: number;
  readonly rows: number;
  readonly columns: number;
}

/** One weight, and what stands in its block; null for types whose blocks are numbers. */
export interface WeightView {
  readonly row: number;
  readonly column: number;
  readonly value: number;
  readonly block: BlockView | null;
}

/** Scales of successive blocks. */
export interface ScalesView {
  readonly blockCount: number;
  readonly blockSize: number;
  readonly first: number;
  readonly scales: readonly BlockScale[];
}

/** Keys whose values differ, or that one model alone has. */
export interface KeyDifference {
  readonly key: string;
  readonly a: string | undefined;
  readonly b: string | undefined;
}

/** What the values of a tensor are like, or in what those of two differ. */
export type Found = Measured | TensorStats;

/** What can be asked. */
export interface Calls {
  open(source: ModelSource): ModelView;
  close(model: number): void;
  value(request: { model: number; key: number; first: number; count: number }): ValueView;
  vocabulary(model: number): Vocabulary;
  tokens(request: { model: number; text: string; special: boolean }): TextTokens;
  template(request: { model: number; key: number; conversation: Conversation }): TemplateTask;
  /** In the worker, whoever has the model: a template is a program in a file. */
  render(task: TemplateTask): RenderedTemplate;
  memory(request: { model: number; context: number | undefined }): MemoryUse;
  /** Without bins there is no histogram, and the values are read once. */
  stats(request: TensorAddress & { bins: number }): TensorStats;
  /** Without a region, of the whole tensor. */
  picture(request: TensorAddress & { width: number; height: number; region?: Region | undefined }): Picture;
  weight(request: TensorAddress & { row: number; column: number }): WeightView;
  values(request: TensorAddress & { row: number; column: number; rows: number; columns: number }): ValuesView;
  scales(request: TensorAddress & { first: number; count: number }): ScalesView | null;
  compare(request: { a: TensorAddress; b: TensorAddress }): TensorComparison;
  /** The same of many, without histograms: a question takes longer than to measure a small tensor. */
  measure(request: readonly (TensorAddress | { a: TensorAddress; b: TensorAddress })[]): Found[];
  difference(request: { a: TensorAddress; b: TensorAddress; width: number; height: number }): Picture;
  differentKeys(request: { a: number; b: number }): KeyDifference[];
}

export type CallName = keyof Calls;

/** The models of `gguf-native view` have numbers from here on, those of the page's worker smaller ones. */
export const FIRST_SERVED = 2 ** 32;

/** A call's argument with other numbers of models in it. Only what opens a model has none. */
export function withModels<A>(argument: A, numberOf: (model: number) => number): A {
  if (typeof argument === "number") return numberOf(argument) as A;
  if (Array.isArray(argument)) return argument.map((one) => withModels(one, numberOf)) as A;
  const { model, a, b } = argument as { model?: number; a?: unknown; b?: unknown };
  if (model !== undefined) return { ...argument, model: numberOf(model) };
  return { ...argument, a: withModels(a, numberOf), b: withModels(b, numberOf) };
}

/** The numbers of the models that a call is about. */
export function modelsIn(argument: unknown): number[] {
  const models: number[] = [];
  withModels(argument, (model) => {
    models.push(model);
    return model;
  });
  return models;
}

/** What the page sends. */
export type ToWorker =
  | { readonly id: number; readonly call: CallName; readonly argument: unknown }
  | { readonly id: number; readonly cancel: true };

/** What the worker sends. */
export type FromWorker =
  | { readonly id: number; readonly done: number; readonly total: number }
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string };

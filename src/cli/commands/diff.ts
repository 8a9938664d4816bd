/** `gguf-native diff`: in what two models differ. */

import { LAYOUT_KEYS } from "../../describe/layout-keys";
import { metadataText } from "../../describe/metadata-text";
import { sameValue } from "../../describe/same-value";
import { counted, escapeText, grouped, humanBytes, shapeText } from "../../describe/text";
import { differingTexts } from "../../describe/value-difference";
import { valueAt } from "../../file/metadata";
import type { ValuePlace } from "../../file/value-parts";
import type { GgufModel, GgufModelTensor, TensorComparison } from "../../index";
import { MODEL_HELP, MODEL_OPTIONS, modelOptions, type OpenedModel, openModel } from "../arguments/open-model";
import { expectPositionals, oneOf, parse } from "../arguments/parse";
import { canDequantize } from "../arguments/select-tensors";
import type { Command } from "../command";
import { exactJson } from "../output/json";
import { again, type Listed, listed, listedWhere } from "../output/listed";
import { type Column, wrapWhole } from "../output/table";
import type { Terminal } from "../output/terminal";
import { textWidth } from "../output/text-width";
import { differentBytes, metadataJson } from "../output/value-json";
import { asConverted } from "../work/as-converted";
import { keyNames, tensorNames } from "../work/byte-names";
import { Comparisons } from "../work/comparisons";
import { lookAtValues, totalCost, type ValueWork } from "../work/look-at-values";

const HELP = `Usage: gguf-native diff A B [options]

Compares two models, each a file or a URL: metadata key by key, tensors by name,
type and shape, and their values after dequantizing, whatever the types: the
largest and the mean absolute error, the relative error, the signal-to-noise
ratio in decibels (the higher, the closer B is to A), and how many values
differ; then one line for the whole model. Layout does not matter: order,
alignment, splits. A folder of safetensors beside a GGUF file is compared as the
file that 'convert' makes of it, or as it is if 'convert' does not know the
architecture, which is said. Exits with 1 where there is a difference.

  --sort KEY          the order of tensors: error (the least signal to noise
                      first), size (the largest first) or name
  --json              as JSON
${MODEL_HELP}
Examples:
  gguf-native diff model.gguf model-edited.gguf
  gguf-native diff model-F16.gguf model-Q4_K_M.gguf
  gguf-native diff model-F16.gguf model-Q4_K_M.gguf --sort error
  gguf-native diff --json a.gguf b.gguf | jq '.tensors[] | {name, maxError}'
`;

const SORTS = ["error", "size", "name"] as const;
const OPTIONS = {
  sort: { type: "string", choices: SORTS },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

type Model = GgufModel<GgufModelTensor>;

type Side = "a" | "b";

/** A key with different values, or that one file alone has: what each calls it. */
type KeyDifference = { readonly [S in Side]: string | undefined };

interface TensorDifference {
  name: string;
  /** The bytes of the name in hexadecimal, where it is not UTF-8. */
  nameBytes?: string;
  /** The file that alone has the tensor, and what it has it as. */
  only?: Side;
  type?: string;
  shape?: readonly number[];
  /** What both have the tensor as. */
  types?: [string, string];
  shapes?: [readonly number[], readonly number[]];
  /** Where the shapes are the same and both types can be turned into numbers. */
  errors?: TensorComparison;
}

interface Differences {
  keys: Listed<KeyDifference>;
  tensors: Listed<TensorDifference>;
  /** Tensors whose data could not be compared: their type cannot be turned into numbers. */
  notCompared: Listed<string>;
  whole: WholeModel;
}

/** How far the models are apart as a whole. */
interface WholeModel {
  /** Bytes of the tensors of each. */
  bytes: [number, number];
  /** Tensors of both, each name once. */
  tensors: number;
  different: number;
  /** The signal-to-noise ratio of all tensors together that have errors, in decibels; null where none has. */
  snr: number | null;
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const paths = expectPositionals(positionals, "A", "B");
  const options = modelOptions(values, paths);
  let a = await openModel(paths[0], options);
  try {
    let b = await openModel(paths[1], options);
    try {
      [a, b] = [
        await asConverted(a, paths[0], b.file, options, terminal),
        await asConverted(b, paths[1], a.file, options, terminal),
      ];
      const found = await compareModels(a, b, oneOf("--sort", values.sort, SORTS), terminal);
      if (values.json) await terminal.printJsonPieces(json(found, a, b));
      else await report(found, a, b, terminal);
      return found.keys.count + found.tensors.count === 0 ? 0 : 1;
    } finally {
      b.file.close();
    }
  } finally {
    a.file.close();
  }
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** A tensor, and the one of the same name in the other model. */
type Pair = [a: GgufModelTensor | undefined, b: GgufModelTensor | undefined];

/** The tensors of both models: those of A in file order, then what only B has. */
function* tensorPairs(a: Model, b: Model): Generator<Pair, void, undefined> {
  const [inA, inB] = [tensorNames(a), tensorNames(b)];
  let inBoth = 0;
  for (const tensor of a.tensors.values()) {
    const name = inB.find(inA.bytesOf(tensor.name));
    if (name !== undefined) inBoth++;
    yield [tensor, name === undefined ? undefined : b.tensor(name)];
  }
  if (inBoth === b.tensors.size) return;
  for (const tensor of b.tensors.values()) {
    if (inA.find(inB.bytesOf(tensor.name)) === undefined) yield [undefined, tensor];
  }
}

/** The same of metadata keys. */
function* keyPairs(a: Model, b: Model): Generator<KeyDifference, void, undefined> {
  const [inA, inB] = [keyNames(a), keyNames(b)];
  for (const key of a.metadata.keys()) {
    if (!LAYOUT_KEYS.has(key)) yield { a: key, b: inB.find(inA.bytesOf(key)) };
  }
  for (const key of b.metadata.keys()) {
    if (!LAYOUT_KEYS.has(key) && inA.find(inB.bytesOf(key)) === undefined) yield { a: undefined, b: key };
  }
}

/** Of what `make()` gives the items with these numbers, ascending, with their numbers: made again each time. */
function picked<T>(make: () => Iterable<T>, numbers: readonly number[]): Listed<[index: number, item: T]> {
  return listed(function* () {
    let next = 0;
    let index = 0;
    for (const item of make()) {
      if (next === numbers.length) return;
      if (numbers[next] === index) {
        next++;
        yield [index, item];
      }
      index++;
    }
  }, numbers.length);
}

/** The numbers of the items of `make()` that `isWanted` accepts. */
function numbersWhere<T>(items: Iterable<T>, isWanted: (item: T) => boolean): number[] {
  const numbers: number[] = [];
  let index = 0;
  for (const item of items) {
    if (isWanted(item)) numbers.push(index);
    index++;
  }
  return numbers;
}

function mapped<T, U>(items: Listed<T>, map: (item: T) => U): Listed<U> {
  return listed(function* () {
    for (const item of items) yield map(item);
  }, items.count);
}

/** A pair that differs, by its number. */
type Numbered = readonly [index: number, pair: Pair];

/** Orders that `--sort` gives. */
function orderOf(sort: (typeof SORTS)[number], errors: Comparisons): (one: Numbered, other: Numbered) => number {
  const either = ([, [a, b]]: Numbered): GgufModelTensor => (a ?? b) as GgufModelTensor;
  const bytes = ([, pair]: Numbered): number => Math.max(...pair.map((each) => each?.byteLength || 0));
  const ratio = ([index]: Numbered): number => errors.get(index)?.snr ?? Number.NEGATIVE_INFINITY;
  if (sort === "name") return (a, b) => (either(a).name < either(b).name ? -1 : 1);
  if (sort === "size") return (a, b) => bytes(b) - bytes(a);
  return (a, b) => (ratio(a) === ratio(b) ? a[0] - b[0] : ratio(a) - ratio(b));
}

/** Sums up the comparisons of tensors with errors: their noise over their signal. */
function wholeRatio(errors: Iterable<TensorComparison | undefined>): number | null {
  let [noise, signal] = [0, 0];
  for (const each of errors) {
    if (each === undefined || !(each.rmsError > 0)) continue;
    const squares = each.rmsError ** 2 * (each.count - each.incomparable);
    noise += squares;
    signal += squares / each.relativeError ** 2;
  }
  return noise === 0 ? null : 10 * Math.log10(signal / noise);
}

async function compareModels(
  a: OpenedModel,
  b: OpenedModel,
  sort: (typeof SORTS)[number] | undefined,
  terminal: Terminal,
): Promise<Differences> {
  const pairs = (): Iterable<Pair> => tensorPairs(a.file, b.file);
  const errors = await compareValues(a, b, terminal);
  const notCompared: number[] = [];
  let index = -1;
  const different = numbersWhere(pairs(), (pair) => {
    index++;
    const [one, other] = pair;
    if (isComparable(pair)) return errors.has(index);
    if (one === undefined || other === undefined || !sameShape(one, other) || one.type !== other.type) return true;
    notCompared.push(index);
    return false;
  });
  const keys = (): Iterable<KeyDifference> => keyPairs(a.file, b.file);
  const isDifferent = (key: KeyDifference): boolean =>
    key.a === undefined || key.b === undefined || !sameValue(a.file.metadata, b.file.metadata, key.a, key.b);
  const bytes = [a, b].map(({ file }) => {
    let sum = 0;
    for (const { byteLength } of file.tensors.values()) sum += byteLength || 0;
    return sum;
  }) as [number, number];
  let numbered = picked(pairs, different);
  if (sort !== undefined) {
    const sorted = [...numbered].sort(orderOf(sort, errors));
    numbered = listed(() => sorted, sorted.length);
  }
  const ratios = again(() => different.map((index) => errors.get(index)));
  return {
    whole: { bytes, tensors: index + 1, different: different.length, snr: wholeRatio(ratios) },
    keys: mapped(picked(keys, numbersWhere(keys(), isDifferent)), ([, key]) => key),
    tensors: mapped(numbered, ([index, pair]) => tensorDifference(pair, errors.get(index))),
    notCompared: mapped(picked(pairs, notCompared), ([, pair]) => (pair[0] as GgufModelTensor).name),
  };
}

function tensorDifference([one, other]: Pair, errors: TensorComparison | undefined): TensorDifference {
  const either = (one ?? other) as GgufModelTensor;
  const { name, type, shape } = either;
  const label = name.includes("\ufffd") ? { name, ...differentBytes("nameBytes", name, either.nameBytes()) } : { name };
  if (one === undefined || other === undefined) {
    return { ...label, only: other === undefined ? "a" : "b", type, shape };
  }
  const types: [string, string] = [type, other.type];
  if (errors !== undefined) return { ...label, types, shapes: [shape, shape], errors };
  return { ...label, types, shapes: [shape, sameShape(one, other) ? shape : other.shape] };
}

function sameShape(a: GgufModelTensor, b: GgufModelTensor): boolean {
  const shape = b.shape;
  return a.shape.length === shape.length && a.shape.every((dim, i) => dim === shape[i]);
}

/** Whether values can be compared one by one. */
function isComparable(pair: Pair): pair is [GgufModelTensor, GgufModelTensor] {
  const [a, b] = pair;
  return a !== undefined && b !== undefined && sameShape(a, b) && canDequantize(a) && canDequantize(b);
}

type Compared = { readonly index: number; readonly pair: [GgufModelTensor, GgufModelTensor] };

const work: ValueWork<Compared, TensorComparison> = {
  tensor: ({ pair: [a] }) => a,
  cost: ({ pair: [a, b] }) => a.byteLength + b.byteLength,
  later: ({ pair: [a, b] }, options) => a.compare(b, options),
};

/** Compares the values of tensors; those of which the bytes differ, by the number of the pair. */
async function compareValues(a: OpenedModel, b: OpenedModel, terminal: Terminal): Promise<Comparisons> {
  const compared = again(function* (): Generator<Compared, void, undefined> {
    let index = -1;
    for (const pair of tensorPairs(a.file, b.file)) {
      index++;
      if (isComparable(pair)) yield { index, pair };
    }
  });
  const found = new Comparisons();
  await terminal.withProgress(`${a.path} and ${b.path}`, totalCost(compared, work), (progress) =>
    lookAtValues(compared, work, progress, (comparison, _, { index }) => {
      if (!comparison.sameBytes) found.add(index, comparison);
    }),
  );
  return found;
}

/** Everything as JSON, in pieces; of metadata the values in both files. */
function* json(
  { keys, tensors, notCompared, whole }: Differences,
  a: OpenedModel,
  b: OpenedModel,
): Generator<string, void, undefined> {
  const same = keys.count + tensors.count === 0;
  yield `${exactJson({ a: a.path, b: b.path, same, whole }, 2).slice(0, -2)},\n  "metadata": [`;
  let separator = "";
  for (const key of keys) {
    yield `${separator}\n    { "key": ${JSON.stringify(key.a ?? key.b)}`;
    if (key.a !== undefined) yield* sideJson("a", a, key.a);
    if (key.b !== undefined) yield* sideJson("b", b, key.b);
    yield " }";
    separator = ",";
  }
  yield `${keys.count > 0 ? "\n  " : ""}],\n  "tensors": [`;
  separator = "";
  for (const { errors, ...rest } of tensors) {
    yield `${separator}\n    ${exactJson({ ...rest, ...(errors && errorNumbers(errors)) })}`;
    separator = ",";
  }
  yield `${tensors.count > 0 ? "\n  " : ""}],\n  "notCompared": [`;
  separator = "";
  for (const name of notCompared) {
    yield `${separator}${JSON.stringify(name)}`;
    separator = ", ";
  }
  yield "]\n}\n";
}

function* sideJson(side: Side, { file }: OpenedModel, key: string): Generator<string, void, undefined> {
  yield `, "${side}": `;
  yield* metadataJson(file.metadata, key);
}

/** What JSON has of a comparison. */
function errorNumbers({ count: values, sameBytes: _, ...errors }: TensorComparison): Record<string, number> {
  return { values, ...errors };
}

async function report(
  { keys, tensors, notCompared, whole }: Differences,
  a: OpenedModel,
  b: OpenedModel,
  terminal: Terminal,
): Promise<void> {
  if (keys.count > 0) {
    const columns: Column[] = [
      markedColumn("key", terminal),
      { title: "type", paint: terminal.type },
      { title: "value", min: 20 },
    ];
    terminal.print([terminal.heading(`Metadata (${grouped(keys.count)})`)]);
    const rows = again(() => keyRows(keys, a.file, b.file));
    await terminal.printLines(terminal.table(columns, rows, true));
  }
  if (tensors.count > 0) {
    if (keys.count > 0) terminal.print([""]);
    const number = (title: string): Column => ({ title, align: "right" });
    const columns: Column[] = [
      markedColumn("name", terminal),
      { title: "what", min: Math.min(WHAT, terminal.width - 12), paint: terminal.type },
      { ...number("max error"), drop: 3 },
      { ...number("mean"), drop: 0 },
      { ...number("relative"), drop: 1 },
      number("SNR dB"),
      { ...number("different"), drop: 2 },
    ];
    terminal.print([terminal.heading(`Tensors (${grouped(tensors.count)})`)]);
    await terminal.printLines(terminal.table(columns, mapped(tensors, tensorRow), true));
  }
  if (notCompared.count > 0) {
    terminal.complain(`the data of ${counted(notCompared.count, "tensor")} of unknown types was not compared`);
  }
  if (keys.count + tensors.count === 0) {
    terminal.print([terminal.good("no differences")]);
    return;
  }
  const [minus, plus] = [a, b].map(({ path }) => escapeText(path));
  const { bytes, snr } = whole;
  const ratio = snr === null ? "" : `; SNR ${decibels(snr)} dB in all that have errors`;
  const sizes = bytes.map(humanBytes).join(" -> ");
  const found = [
    ...(keys.count > 0 ? [`${counted(keys.count, "metadata key")} differ${keys.count === 1 ? "s" : ""}`] : []),
    `${grouped(tensors.count)} of ${counted(whole.tensors, "tensor")} differ, ${sizes}${ratio}`,
  ];
  const hasMarks =
    keys.count > 0 ||
    listedWhere(
      () => tensors,
      0,
      ({ only }) => only !== undefined,
    ).count > 0;
  const [inA, inB] = [`- in ${minus}`, `+ in ${plus}`];
  const legend = `${inA}, ${inB}`;
  const parts = !hasMarks ? [] : textWidth(legend) <= terminal.width ? [legend] : [inA, inB];
  terminal.print(["", ...[...found, ...parts].flatMap((text) => wrapWhole(text, terminal.width))]);
}

/** Columns that types and shapes of both sides take at most, as a rule. */
const WHAT = 60;

/** The first column: a name after the mark of the side that alone has it. */
function markedColumn(title: string, { good, bad }: Terminal): Column {
  const paint = (text: string): string => {
    const sign = text[0] as string;
    return (sign === "-" ? bad(sign) : sign === "+" ? good(sign) : sign) + text.slice(1);
  };
  return { title: marked(undefined, title), min: 27, paint };
}

function marked(only: Side | undefined, name: string): string {
  return `${only === undefined ? " " : only === "a" ? "-" : "+"}  ${name}`;
}

/** A row for a key that one file has, two for one that both have, with the values from where they differ. */
function* keyRows(keys: Iterable<KeyDifference>, a: Model, b: Model): Generator<string[], void, undefined> {
  const row = (side: Side, { metadata }: Model, key: string, shown?: string): string[] => {
    const [type, value] = metadataText(metadata, key);
    return [marked(side, escapeText(key)), type, shown ?? value];
  };
  for (const key of keys) {
    const [inA, inB] = [placeOf(a, key.a), placeOf(b, key.b)];
    const [valueA, valueB] = inA === undefined || inB === undefined ? [] : differingTexts(inA, inB);
    if (key.a !== undefined) yield row("a", a, key.a, valueA);
    if (key.b !== undefined) yield row("b", b, key.b, valueB);
  }
}

function placeOf({ metadata }: Model, key: string | undefined): ValuePlace | undefined {
  return key === undefined ? undefined : valueAt(metadata, key);
}

function tensorRow({ name, only, type, shape, types, shapes, errors }: TensorDifference): string[] {
  const what = type !== undefined && shape !== undefined ? [type, shapeText(shape)] : [];
  if (types !== undefined && types[0] !== types[1]) what.push(types.join(" -> "));
  if (shapes !== undefined && shapes[0] !== shapes[1]) what.push(shapes.map(shapeText).join(" -> "));
  if (errors !== undefined && what.length === 0) {
    what.push(errors.different > 0 ? "values" : "stored differently");
  }
  const short = (value: number): string => String(Number(value.toPrecision(3)));
  const cells = errors && [
    short(errors.maxError),
    short(errors.meanError),
    short(errors.relativeError),
    decibels(errors.snr),
    share(errors),
  ];
  return [marked(only, escapeText(name)), what.join(", "), ...(cells ?? [])];
}

function decibels(ratio: number): string {
  if (Number.isFinite(ratio)) return ratio.toFixed(1);
  return ratio > 0 ? "inf" : "-inf";
}

function share({ count, different }: TensorComparison): string {
  return count === 0 ? "0 %" : `${((different / count) * 100).toFixed(1)} %`;
}

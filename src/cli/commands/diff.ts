/** `gguf-native diff`: in what two models differ. */
import type { GgufModel, GgufModelTensor, TensorComparison } from "../../index";
import {
  MODEL_HELP,
  MODEL_OPTIONS,
  modelOptions,
  type OpenedModel,
  openModel,
} from "../arguments/open-model";
import { expectPositionals, parse } from "../arguments/parse";
import { canDequantize } from "../arguments/select-tensors";
import type { Command } from "../command";
import { LAYOUT_KEYS } from "../layout-keys";
import { sameValue } from "../model/same-value";
import { exactJson } from "../output/json";
import { metadataText } from "../output/metadata-text";
import type { Terminal } from "../output/terminal";
import {
  type Column,
  counted,
  escapeText,
  float32Text,
  grouped,
  shapeText,
  textWidth,
  wrapWhole,
} from "../output/text";
import { differentBytes, metadataJson } from "../output/value-json";
import { lookAtValues, totalCost, type ValueWork } from "../work/look-at-values";

const HELP = `Usage: gguf-native diff A B [options]

Compares two models, each a file or a URL: metadata key by key, tensors by name,
type and shape, and their values after dequantizing, whatever the types: the
largest and the mean absolute error, the relative error, the signal-to-noise
ratio in decibels (the higher, the closer B is to A), and how many values
differ. Layout does not matter: order, alignment, splits. Exits with 1 where
there is a difference.

  --json              as JSON
${MODEL_HELP}
Examples:
  gguf-native diff model.gguf model-edited.gguf
  gguf-native diff model-F16.gguf model-Q4_K_M.gguf
  gguf-native diff --json a.gguf b.gguf | jq '.tensors[] | {name, maxError}'
`;

const OPTIONS = { json: { type: "boolean" }, ...MODEL_OPTIONS } as const;

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
  keys: KeyDifference[];
  tensors: TensorDifference[];
  /** Tensors whose data could not be compared: their type cannot be turned into numbers. */
  notCompared: string[];
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const paths = expectPositionals(positionals, "A", "B");
  const options = modelOptions(values, paths);
  const a = await openModel(paths[0], options);
  try {
    const b = await openModel(paths[1], options);
    try {
      const found = await compareModels(a, b, terminal);
      if (values.json) await terminal.printJsonPieces(json(found, a, b));
      else report(found, a, b, terminal);
      return found.keys.length + found.tensors.length === 0 ? 0 : 1;
    } finally {
      b.file.close();
    }
  } finally {
    a.file.close();
  }
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** Names of keys or tensors by their bytes, one character each: names that are not UTF-8 may look alike. */
function byBytes(names: Iterable<string>, bytesOf: (name: string) => Uint8Array): Map<string, string> {
  return new Map(Array.from(names, (name) => [Buffer.from(bytesOf(name)).toString("latin1"), name]));
}

function keysOf({ metadata }: Model): Map<string, string> {
  const keys = Array.from(metadata.keys()).filter((key) => !LAYOUT_KEYS.has(key));
  return byBytes(keys, (key) => metadata.keyBytes(key) as Uint8Array);
}

/** A tensor, and the one of the same name in the other model. */
type Pair = [a: GgufModelTensor | undefined, b: GgufModelTensor | undefined];

/** The tensors of both models: those of A in file order, then what only B has. */
function tensorPairs(a: Model, b: Model): Pair[] {
  const [inA, inB] = [a, b].map((model) =>
    byBytes(model.tensors.keys(), (name) => model.tensor(name).nameBytes()),
  ) as [Map<string, string>, Map<string, string>];
  const tensorOf = (model: Model, name: string | undefined): GgufModelTensor | undefined =>
    name === undefined ? undefined : model.tensor(name);
  const pairs = Array.from(inA, ([id, name]): Pair => [a.tensor(name), tensorOf(b, inB.get(id))]);
  const onlyB = Array.from(inB).filter(([id]) => !inA.has(id));
  return [...pairs, ...onlyB.map(([, name]): Pair => [undefined, b.tensor(name)])];
}

async function compareModels(a: OpenedModel, b: OpenedModel, terminal: Terminal): Promise<Differences> {
  const pairs = tensorPairs(a.file, b.file);
  const errors = await compareValues(a, b, pairs.filter(isComparable), terminal);
  const tensors: TensorDifference[] = [];
  const notCompared: string[] = [];
  for (const pair of pairs) {
    const [one, other] = pair;
    const either = (one ?? other) as GgufModelTensor;
    const { name, type, shape } = either;
    const label = { name, ...differentBytes("nameBytes", name, either.nameBytes()) };
    if (one === undefined || other === undefined) {
      tensors.push({ ...label, only: other === undefined ? "a" : "b", type, shape });
      continue;
    }
    const types: [string, string] = [type, other.type];
    const found = errors.get(name);
    if (found !== undefined) {
      if (found.sameBytes) continue;
      tensors.push({ ...label, types, shapes: [shape, shape], errors: found });
    } else if (!sameShape(one, other)) tensors.push({ ...label, types, shapes: [shape, other.shape] });
    else if (types[0] !== types[1]) tensors.push({ ...label, types, shapes: [shape, shape] });
    else notCompared.push(name);
  }
  return { keys: compareMetadata(a.file, b.file), tensors, notCompared };
}

function sameShape(a: GgufModelTensor, b: GgufModelTensor): boolean {
  return String(a.shape) === String(b.shape);
}

/** Whether values can be compared one by one. */
function isComparable(pair: Pair): pair is [GgufModelTensor, GgufModelTensor] {
  const [a, b] = pair;
  return a !== undefined && b !== undefined && sameShape(a, b) && canDequantize(a) && canDequantize(b);
}

const work: ValueWork<[GgufModelTensor, GgufModelTensor], TensorComparison> = {
  tensor: ([a]) => a,
  cost: ([a, b]) => a.byteLength + b.byteLength,
  later: ([a, b], options) => a.compare(b, options),
};

/** Compares the values of tensors; the results by the name in A. */
async function compareValues(
  a: OpenedModel,
  b: OpenedModel,
  pairs: readonly [GgufModelTensor, GgufModelTensor][],
  terminal: Terminal,
): Promise<Map<string, TensorComparison>> {
  const found = await terminal.withProgress(`${a.path} and ${b.path}`, totalCost(pairs, work), (progress) =>
    lookAtValues(pairs, work, progress),
  );
  return new Map(pairs.map(([{ name }], i) => [name, found[i] as TensorComparison]));
}

function compareMetadata(a: Model, b: Model): KeyDifference[] {
  const [inA, inB] = [keysOf(a), keysOf(b)];
  const shared = Array.from(inA, ([id, key]) => ({ a: key, b: inB.get(id) }));
  const onlyB = Array.from(inB).filter(([id]) => !inA.has(id));
  return [
    ...shared.filter((key) => key.b === undefined || !sameValue(a.metadata, b.metadata, key.a, key.b)),
    ...onlyB.map(([, key]) => ({ a: undefined, b: key })),
  ];
}

/** Everything as JSON, in pieces; of metadata the values in both files. */
function* json(
  { keys, tensors, notCompared }: Differences,
  a: OpenedModel,
  b: OpenedModel,
): Generator<string, void, undefined> {
  const same = keys.length + tensors.length === 0;
  yield `${exactJson({ a: a.path, b: b.path, same }, 2).slice(0, -2)},\n  "metadata": [`;
  for (const [i, key] of keys.entries()) {
    yield `${i === 0 ? "" : ","}\n    { "key": ${JSON.stringify(key.a ?? key.b)}`;
    if (key.a !== undefined) yield* sideJson("a", a, key.a);
    if (key.b !== undefined) yield* sideJson("b", b, key.b);
    yield " }";
  }
  const shown = tensors.map(({ errors, ...rest }) => ({ ...rest, ...(errors && errorNumbers(errors)) }));
  const rest = exactJson({ tensors: shown, notCompared }, 2);
  yield `${keys.length > 0 ? "\n  " : ""}],${rest.slice(1)}\n`;
}

function* sideJson(side: Side, { file }: OpenedModel, key: string): Generator<string, void, undefined> {
  yield `, "${side}": `;
  yield* metadataJson(file.metadata, key);
}

/** What JSON has of a comparison. */
function errorNumbers({ count: values, sameBytes: _, ...errors }: TensorComparison): Record<string, number> {
  return { values, ...errors };
}

function report(
  { keys, tensors, notCompared }: Differences,
  a: OpenedModel,
  b: OpenedModel,
  terminal: Terminal,
): void {
  if (keys.length > 0) {
    const columns: Column[] = [
      markedColumn("key", terminal),
      { title: "type", paint: terminal.type },
      { title: "value", min: 20 },
    ];
    terminal.print([
      terminal.heading(`Metadata (${grouped(keys.length)})`),
      ...terminal.table(columns, keyRows(keys, a.file, b.file), true),
    ]);
  }
  if (tensors.length > 0) {
    if (keys.length > 0) terminal.print([""]);
    const number = (title: string): Column => ({ title, align: "right" });
    const columns: Column[] = [
      markedColumn("name", terminal),
      { title: "what", min: 17, paint: terminal.type },
      { ...number("max error"), drop: 3 },
      { ...number("mean"), drop: 0 },
      { ...number("relative"), drop: 1 },
      number("SNR dB"),
      { ...number("different"), drop: 2 },
    ];
    terminal.print([
      terminal.heading(`Tensors (${grouped(tensors.length)})`),
      ...terminal.table(columns, tensors.map(tensorRow), true),
    ]);
  }
  if (notCompared.length > 0) {
    terminal.complain(
      `the data of ${counted(notCompared.length, "tensor")} of unknown types was not compared`,
    );
  }
  if (keys.length + tensors.length === 0) {
    terminal.print([terminal.good("no differences")]);
    return;
  }
  const [minus, plus] = [a, b].map(({ path }) => escapeText(path));
  const found = `${counted(keys.length, "metadata key")} and ${counted(tensors.length, "tensor")} differ`;
  const [onlyA, onlyB] = [`- only in ${minus}`, `+ only in ${plus}`];
  const legend = `${onlyA}, ${onlyB}`;
  const parts = textWidth(legend) <= terminal.width ? [legend] : [onlyA, onlyB];
  terminal.print(["", ...[found, ...parts].flatMap((text) => wrapWhole(text, terminal.width))]);
}

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

/** A row for a key that one file has, two for one that both have. */
function keyRows(keys: readonly KeyDifference[], a: Model, b: Model): string[][] {
  const row = (side: Side, { metadata }: Model, key: string | undefined): string[][] => {
    if (key === undefined) return [];
    return [[marked(side, escapeText(key)), ...metadataText(metadata, key)]];
  };
  return keys.flatMap((key) => [...row("a", a, key.a), ...row("b", b, key.b)]);
}

function tensorRow({ name, only, type, shape, types, shapes, errors }: TensorDifference): string[] {
  const what = type !== undefined && shape !== undefined ? [type, shapeText(shape)] : [];
  if (types !== undefined && types[0] !== types[1]) what.push(types.join(" -> "));
  if (shapes !== undefined && shapes[0] !== shapes[1]) what.push(shapes.map(shapeText).join(" -> "));
  if (errors !== undefined && what.length === 0) {
    what.push(errors.different > 0 ? "values" : "stored differently");
  }
  const short = (value: number): string => float32Text(Number(value.toPrecision(3)));
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

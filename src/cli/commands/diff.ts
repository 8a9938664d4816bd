/** `gguf-native diff`: in what two models differ. */
import type { GgufModel, GgufModelTensor } from "../../index";
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
import { metadataValueJson } from "../output/json";
import { metadataText } from "../output/metadata-text";
import type { Terminal } from "../output/terminal";
import { counted, escapeText, float32Text, shapeText, table } from "../output/text";
import { type Comparison, emptyComparison, mergeComparison } from "../work/compare";
import { valueTasks } from "../work/pieces";
import { runTasks } from "../work/run-tasks";

const HELP = `Usage: gguf-native diff A B [options]

Compares two models, each a file or a URL: metadata key by key, tensors by name,
type and shape, and their values after dequantizing, whatever the types: the
largest and the mean absolute error, and how many values differ. Layout does not
matter: order, alignment, splits. Exits with 1 where there is a difference.

  --json              as JSON
${MODEL_HELP}
Examples:
  gguf-native diff model.gguf model-edited.gguf
  gguf-native diff model-F16.gguf model-Q4_K_M.gguf
  gguf-native diff --json a.gguf b.gguf | jq '.tensors[] | {name, maxError}'
`;

type Model = GgufModel<GgufModelTensor>;

type Side = "a" | "b";

interface KeyDifference {
  key: string;
  /** The file that alone has the key; absent where both have it with different values. */
  only?: Side;
}

interface TensorDifference {
  name: string;
  /** The file that alone has the tensor, and what it has it as. */
  only?: Side;
  type?: string;
  shape?: readonly number[];
  /** What both have the tensor as. */
  types?: [string, string];
  shapes?: [readonly number[], readonly number[]];
  /** Where the shapes are the same and both types can be turned into numbers. */
  errors?: Comparison;
}

interface Differences {
  keys: KeyDifference[];
  tensors: TensorDifference[];
  /** Tensors whose data could not be compared: their type cannot be turned into numbers. */
  notCompared: string[];
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, { json: { type: "boolean" }, ...MODEL_OPTIONS });
  const paths = expectPositionals(positionals, "A", "B");
  const options = modelOptions(values, paths);
  const a = await openModel(paths[0], options);
  try {
    const b = await openModel(paths[1], options);
    try {
      const found = await compareModels(a, b, terminal);
      if (values.json) terminal.printJson(json(found, a, b));
      else report(found, a, b, terminal);
      return found.keys.length + found.tensors.length === 0 ? 0 : 1;
    } finally {
      b.file.close();
    }
  } finally {
    a.file.close();
  }
}

export const command: Command = { help: HELP, run };

async function compareModels(a: OpenedModel, b: OpenedModel, terminal: Terminal): Promise<Differences> {
  const { tensors, comparable, notCompared } = compareInfos(a.file, b.file);
  const errors = await compareValues(a, b, comparable, terminal);
  for (const { name, type, shape } of comparable) {
    const found = errors.get(name) as Comparison;
    const types: [string, string] = [type, b.file.tensor(name).type];
    if (!found.identical || types[0] !== types[1]) {
      tensors.push({ name, types, shapes: [shape, shape], errors: found });
    }
  }
  const names = new Set([...a.file.tensors.keys(), ...b.file.tensors.keys()]);
  const places = new Map(Array.from(names, (name, i) => [name, i]));
  tensors.sort((x, y) => (places.get(x.name) as number) - (places.get(y.name) as number));
  return { keys: compareMetadata(a.file, b.file), tensors, notCompared };
}

/** Compares the values of `comparable`, tensors of A; the results by name. */
async function compareValues(
  a: OpenedModel,
  b: OpenedModel,
  comparable: readonly GgufModelTensor[],
  terminal: Terminal,
): Promise<Map<string, Comparison>> {
  const sameType = comparable.filter(({ name, type }) => b.file.tensor(name).type === type);
  const isSameOrder = a.file.byteOrder === b.file.byteOrder;
  const sameEncoding = new Set(isSameOrder ? sameType.map(({ name }) => name) : []);
  const tasks = valueTasks(comparable);
  const results = await runTasks(terminal, "compare", { sameEncoding }, [a, b], tasks);
  const errors = new Map(comparable.map(({ name }) => [name, emptyComparison()]));
  tasks.forEach(({ name }, i) => {
    mergeComparison(errors.get(name) as Comparison, results[i] as Comparison);
  });
  return errors;
}

function compareMetadata(a: Model, b: Model): KeyDifference[] {
  const keys: KeyDifference[] = [];
  for (const key of a.metadata.keys()) {
    if (LAYOUT_KEYS.has(key)) continue;
    if (!b.metadata.has(key)) keys.push({ key, only: "a" });
    else if (metadataValueJson(a.metadata, key) !== metadataValueJson(b.metadata, key)) keys.push({ key });
  }
  for (const key of b.metadata.keys()) {
    if (!LAYOUT_KEYS.has(key) && !a.metadata.has(key)) keys.push({ key, only: "b" });
  }
  return keys;
}

/** What differs apart from values, and the tensors of A whose values must be compared. */
function compareInfos(
  a: Model,
  b: Model,
): { tensors: TensorDifference[]; comparable: GgufModelTensor[]; notCompared: string[] } {
  const tensors: TensorDifference[] = [];
  const comparable: GgufModelTensor[] = [];
  const notCompared: string[] = [];
  for (const tensor of a.tensors.values()) {
    const { name, type, shape } = tensor;
    const other = b.tensors.get(name);
    if (other === undefined) tensors.push({ name, only: "a", type, shape });
    else if (String(shape) !== String(other.shape)) {
      tensors.push({ name, types: [type, other.type], shapes: [shape, other.shape] });
    } else if (canDequantize(tensor) && canDequantize(other)) comparable.push(tensor);
    else if (type !== other.type) tensors.push({ name, types: [type, other.type], shapes: [shape, shape] });
    else notCompared.push(name);
  }
  for (const { name, type, shape } of b.tensors.values()) {
    if (!a.tensors.has(name)) tensors.push({ name, only: "b", type, shape });
  }
  return { tensors, comparable, notCompared };
}

/** Everything as JSON; for metadata the values in both files. */
function json({ keys, tensors, notCompared }: Differences, a: OpenedModel, b: OpenedModel): unknown {
  const value = ({ file }: OpenedModel, key: string): unknown =>
    file.metadata.has(key) ? JSON.parse(metadataValueJson(file.metadata, key)) : undefined;
  return {
    a: a.path,
    b: b.path,
    same: keys.length + tensors.length === 0,
    metadata: keys.map(({ key }) => ({ key, a: value(a, key), b: value(b, key) })),
    tensors: tensors.map(({ errors, ...rest }) => ({ ...rest, ...(errors && errorNumbers(errors)) })),
    notCompared,
  };
}

interface ErrorNumbers {
  values: number;
  different: number;
  incomparable: number;
  maxError: number;
  meanError: number;
  rmsError: number;
}

/** Errors are those of the values that are finite in both files; 0 where no value is. */
function errorNumbers({ elements, different, incomparable, ...sums }: Comparison): ErrorNumbers {
  const count = Math.max(1, elements - incomparable);
  const { maxError, sumError, sumSquares } = sums;
  const means = { meanError: sumError / count, rmsError: Math.sqrt(sumSquares / count) };
  return { values: elements, different, incomparable, maxError, ...means };
}

function report(
  { keys, tensors, notCompared }: Differences,
  a: OpenedModel,
  b: OpenedModel,
  terminal: Terminal,
): void {
  const { width } = terminal;
  if (keys.length > 0) {
    terminal.print([
      terminal.heading(`Metadata (${keys.length})`),
      ...table(sideColumns("key", "value"), keyRows(keys, a.file, b.file), width),
    ]);
  }
  if (tensors.length > 0) {
    if (keys.length > 0) terminal.print([""]);
    const numbers = ["max error", "mean error", "different"];
    const columns = [
      ...sideColumns("name", "what"),
      ...numbers.map((title) => ({ title, align: "right" as const })),
    ];
    terminal.print([
      terminal.heading(`Tensors (${tensors.length})`),
      ...table(columns, tensors.map(tensorRow), width),
    ]);
  }
  if (notCompared.length > 0) {
    terminal.complain(
      `the data of ${counted(notCompared.length, "tensor")} of unknown types was not compared`,
    );
  }
  if (keys.length + tensors.length === 0) {
    terminal.print(["no differences"]);
    return;
  }
  const [minus, plus] = [a, b].map(({ path }) => escapeText(path));
  const found = `${counted(keys.length, "metadata key")} and ${counted(tensors.length, "tensor")} differ`;
  terminal.print(["", found, `- only in ${minus}, + only in ${plus}`]);
}

function sideColumns(name: string, what: string): { title: string; min?: number }[] {
  return [{ title: "" }, { title: name, min: 16 }, { title: what, min: 12 }];
}

function mark(only: Side | undefined): string {
  return only === undefined ? " " : only === "a" ? "-" : "+";
}

/** A row for a key that one file has, two for one that both have. */
function keyRows(keys: readonly KeyDifference[], a: Model, b: Model): string[][] {
  return keys.flatMap(({ key, only }) => {
    const row = (side: Side): string[] => {
      const [type, value] = metadataText((side === "a" ? a : b).metadata, key);
      return [mark(side), escapeText(key), `${type}  ${value}`];
    };
    return only === undefined ? [row("a"), row("b")] : [row(only)];
  });
}

function tensorRow({ name, only, type, shape, types, shapes, errors }: TensorDifference): string[] {
  const what = type !== undefined && shape !== undefined ? [type, shapeText(shape)] : [];
  if (types !== undefined && types[0] !== types[1]) what.push(types.join(" -> "));
  if (shapes !== undefined && shapes[0] !== shapes[1]) what.push(shapes.map(shapeText).join(" -> "));
  if (errors !== undefined && what.length === 0) {
    what.push(errors.different > 0 ? "values" : "stored differently");
  }
  const numbers = errors && errorNumbers(errors);
  const short = (value: number): string => float32Text(Number(value.toPrecision(3)));
  const cells = numbers && [short(numbers.maxError), short(numbers.meanError), share(numbers)];
  return [mark(only), escapeText(name), what.join(", "), ...(cells ?? [])];
}

function share({ values, different }: ErrorNumbers): string {
  return values === 0 ? "0 %" : `${((different / values) * 100).toFixed(1)} %`;
}

/** `gguf-native diff`: in what two models differ. */
import { type GgufFile, type GgufTensor, openSync } from "../../index";
import { expectPositionals, parse } from "../args";
import { LAYOUT_KEYS } from "../layout-keys";
import type { Command } from "../main";
import { metadataValueJson } from "../output/json";
import { metadataText } from "../output/metadata-text";
import { complain, heading, outputWidth, print, printJson } from "../output/terminal";
import { counted, escapeText, float32Text, shapeText, table } from "../output/text";
import { canDequantize } from "../select";
import { type Comparison, emptyComparison, mergeComparison } from "../work/compare";
import { overParts } from "../work/statistics";

const HELP = `Usage: gguf-native diff A B [--json]

Compares two models: metadata key by key, tensors by name, type and shape, and
their values after dequantizing, whatever the types: the largest and the mean
absolute error, and how many values differ. How the files are laid out does not
matter: order, alignment, splits. Exits with 1 where there is a difference.

  --json   as JSON

Examples:
  gguf-native diff model.gguf model-edited.gguf
  gguf-native diff model-F16.gguf model-Q4_K_M.gguf
  gguf-native diff --json a.gguf b.gguf | jq '.tensors[] | {name, maxError}'
`;

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

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, { json: { type: "boolean" } });
  const paths = expectPositionals(positionals, "FILE", "FILE");
  const a = openSync(paths[0]);
  const b = openSync(paths[1]);
  try {
    const found = await compare(a, b, paths);
    if (values.json) printJson(json(found, a, b, paths));
    else report(found, a, b, paths);
    return found.keys.length + found.tensors.length === 0 ? 0 : 1;
  } finally {
    a.close();
    b.close();
  }
}

export const command: Command = { help: HELP, run };

async function compare(a: GgufFile, b: GgufFile, paths: [string, string]): Promise<Differences> {
  const { tensors, comparable, notCompared } = compareInfos(a, b);
  const errors = new Map(comparable.map(({ name }) => [name, emptyComparison()]));
  await overParts<Comparison>(paths.join(" and "), "compare", paths, comparable, ({ name }, part) => {
    mergeComparison(errors.get(name) as Comparison, part);
  });
  for (const { name, type, shape } of comparable) {
    const found = errors.get(name) as Comparison;
    const types: [string, string] = [type, b.tensor(name).type];
    if (!found.identical || types[0] !== types[1])
      tensors.push({ name, types, shapes: [shape, shape], errors: found });
  }
  const names = new Set([...a.tensors.keys(), ...b.tensors.keys()]);
  const places = new Map(Array.from(names, (name, i) => [name, i]));
  tensors.sort((x, y) => (places.get(x.name) as number) - (places.get(y.name) as number));
  return { keys: compareMetadata(a, b), tensors, notCompared };
}

function compareMetadata(a: GgufFile, b: GgufFile): KeyDifference[] {
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

/** What differs without a look at values, and the tensors of A whose values are to be compared. */
function compareInfos(
  a: GgufFile,
  b: GgufFile,
): { tensors: TensorDifference[]; comparable: GgufTensor[]; notCompared: string[] } {
  const tensors: TensorDifference[] = [];
  const comparable: GgufTensor[] = [];
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

/** Everything as JSON; of metadata the values in both files. */
function json(
  { keys, tensors, notCompared }: Differences,
  a: GgufFile,
  b: GgufFile,
  paths: [string, string],
): unknown {
  const value = (file: GgufFile, key: string): unknown =>
    file.metadata.has(key) ? JSON.parse(metadataValueJson(file.metadata, key)) : undefined;
  return {
    ...{ a: paths[0], b: paths[1], same: keys.length + tensors.length === 0 },
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

/** Errors are of the values that are finite in both files; 0 where there is none. */
function errorNumbers({ elements, different, incomparable, ...sums }: Comparison): ErrorNumbers {
  const count = Math.max(1, elements - incomparable);
  const { maxError, sumError, sumSquares } = sums;
  const means = { meanError: sumError / count, rmsError: Math.sqrt(sumSquares / count) };
  return { values: elements, different, incomparable, maxError, ...means };
}

function report(
  { keys, tensors, notCompared }: Differences,
  a: GgufFile,
  b: GgufFile,
  paths: [string, string],
): void {
  const width = outputWidth();
  if (keys.length > 0) {
    print([
      heading(`Metadata (${keys.length})`),
      ...table(sideColumns("key", "value"), keyRows(keys, a, b), width),
    ]);
  }
  if (tensors.length > 0) {
    if (keys.length > 0) print([""]);
    const numbers = ["max error", "mean error", "different"];
    const columns = [
      ...sideColumns("name", "what"),
      ...numbers.map((title) => ({ title, align: "right" as const })),
    ];
    print([heading(`Tensors (${tensors.length})`), ...table(columns, tensors.map(tensorRow), width)]);
  }
  if (notCompared.length > 0) {
    complain(`the data of ${counted(notCompared.length, "tensor")} of unknown types was not compared`);
  }
  if (keys.length + tensors.length === 0) {
    print(["no differences"]);
    return;
  }
  const [minus, plus] = paths.map(escapeText);
  const found = `${counted(keys.length, "metadata key")} and ${counted(tensors.length, "tensor")} differ`;
  print(["", found, `- only in ${minus}, + only in ${plus}`]);
}

function sideColumns(name: string, what: string): { title: string; min?: number }[] {
  return [{ title: "" }, { title: name, min: 16 }, { title: what, min: 12 }];
}

function mark(only: Side | undefined): string {
  return only === undefined ? " " : only === "a" ? "-" : "+";
}

/** A row for a key that one file has, two for one that both have. */
function keyRows(keys: readonly KeyDifference[], a: GgufFile, b: GgufFile): string[][] {
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
  if (errors !== undefined && what.length === 0)
    what.push(errors.different > 0 ? "values" : "stored differently");
  const numbers = errors && errorNumbers(errors);
  const short = (value: number): string => float32Text(Number(value.toPrecision(3)));
  const cells = numbers && [short(numbers.maxError), short(numbers.meanError), share(numbers)];
  return [mark(only), escapeText(name), what.join(", "), ...(cells ?? [])];
}

function share({ values, different }: ErrorNumbers): string {
  return values === 0 ? "0 %" : `${((different / values) * 100).toFixed(1)} %`;
}

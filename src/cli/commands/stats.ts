/** `gguf-native stats`: what the values of tensors look like. */
import type { GgufModelTensor } from "../../index";
import { MODEL_HELP, MODEL_OPTIONS, modelOptions, openPartialModel } from "../arguments/open-model";
import { expectPositionals, parse, UsageError, wholeNumber } from "../arguments/parse";
import { selectTensors } from "../arguments/select-tensors";
import type { Command } from "../command";
import { histogramLines, histogramSvg } from "../output/bar-chart";
import { scanRows } from "../output/scan-text";
import type { Terminal } from "../output/terminal";
import { escapeText, float32Text, grouped, humanBytes, shapeText, table } from "../output/text";
import { writeFiles } from "../output/write-files";
import { finiteCount, meanOf, type Scan } from "../work/scan";
import { distributionsOf, scanTensors, type TensorDistribution } from "../work/tensor-statistics";

const HELP = `Usage: gguf-native stats FILE|URL TENSOR... [options]

Minimum, maximum, mean, standard deviation, zeros, NaNs and infinities of a
tensor, and a histogram of its values. TENSOR is a name or a glob (* ? [a-z]).
Several tensors are shown as a table. The tensors of a URL are fetched twice.

  --bins N            bars of the histogram, 1 to 1000 (default 20)
  --svg OUT           draws the histogram of one tensor as a picture
  --json              everything as JSON; the numbers that it lacks are strings:
                      "NaN", "Infinity"
${MODEL_HELP}
Infinities and NaNs are counted, and left out of everything else.

Examples:
  gguf-native stats model.gguf blk.0.attn_q.weight
  gguf-native stats model.gguf '*norm*'
  gguf-native stats model.gguf output.weight --bins 100 --svg output.svg
`;

const OPTIONS = {
  bins: { type: "string" },
  svg: { type: "string" },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

/** Everything that is shown of a tensor. */
interface TensorStats extends TensorDistribution {
  tensor: GgufModelTensor;
  scan: Scan;
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, ...patterns] = expectPositionals(positionals, "FILE|URL", "TENSOR...");
  const bins = wholeNumber("--bins", values.bins, 1, 1000) ?? 20;
  const { model } = await openPartialModel(path, modelOptions(values, [path]));
  try {
    const tensors = selectTensors(model.file, model.path, patterns);
    if (values.svg !== undefined && tensors.length > 1) {
      throw new UsageError(`--svg draws one tensor, not ${tensors.length}`);
    }
    const scans = await scanTensors(terminal, model, tensors);
    const distributions = await distributionsOf(terminal, model, tensors, scans, bins);
    const all = tensors.map(
      (tensor): TensorStats => ({
        tensor,
        scan: scans.get(tensor.name) as Scan,
        ...(distributions.get(tensor.name) as TensorDistribution),
      }),
    );
    const [only] = all as [TensorStats];
    if (values.svg !== undefined) await writeSvg(values.svg, only, terminal);
    if (values.json) terminal.printJson({ path: model.path, tensors: all.map(json) });
    else if (all.length === 1) terminal.print(details(only, terminal));
    else terminal.print(overview(all, terminal.width));
  } finally {
    model.file.close();
  }
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

function json({ tensor, scan, std, counts }: TensorStats): Record<string, unknown> {
  const { name, type, shape } = tensor;
  const { elements, nan, positiveInfinity, negativeInfinity, zeros, min, max } = scan;
  const counted = { name, type, shape, elements, nan, positiveInfinity, negativeInfinity, zeros };
  if (finiteCount(scan) === 0) return counted;
  return { ...counted, min, max, mean: meanOf(scan), std, histogram: { min, max, counts } };
}

function details({ tensor, scan, std, counts }: TensorStats, terminal: Terminal): string[] {
  const rows = [
    ["type", tensor.type],
    ["shape", shapeText(tensor.shape)],
    ["values", `${grouped(scan.elements)} from ${humanBytes(tensor.byteLength)}`],
    ...scanRows(scan, std),
  ];
  const { width } = terminal;
  const lines = [
    terminal.heading(escapeText(tensor.name)),
    ...table([{ title: "" }, { title: "", min: 20 }], rows, width),
  ];
  // Equal values are all in the first bin; the others would be empty bars that begin at the same value.
  const bins = scan.max > scan.min ? counts : counts.slice(0, 1);
  if (finiteCount(scan) > 0) lines.push("", ...histogramLines(scan, bins, width));
  return lines;
}

function overview(all: readonly TensorStats[], width: number): string[] {
  const rows = all.map(({ tensor, scan, std }) => {
    const finite = finiteCount(scan) > 0;
    const numbers = finite ? [scan.min, scan.max, meanOf(scan), std] : [];
    const cells = Array.from({ length: 4 }, (_, i) => (finite ? shortNumber(numbers[i] as number) : "-"));
    return [
      escapeText(tensor.name),
      ...cells,
      grouped(scan.zeros),
      grouped(scan.elements - finiteCount(scan)),
    ];
  });
  const titles = ["min", "max", "mean", "std", "zeros", "not finite"];
  const columns = [
    { title: "name", min: 16 },
    ...titles.map((title) => ({ title, align: "right" as const })),
  ];
  return table(columns, rows, width);
}

function shortNumber(value: number): string {
  return float32Text(Number(value.toPrecision(3)));
}

async function writeSvg(
  path: string,
  { tensor, scan, counts }: TensorStats,
  terminal: Terminal,
): Promise<void> {
  if (finiteCount(scan) === 0) throw new Error(`tensor '${tensor.name}' has no finite values to draw`);
  const title = `${escapeText(tensor.name)} (${tensor.type}, ${shapeText(tensor.shape)})`;
  const svg = Buffer.from(histogramSvg(title, scan, counts));
  await writeFiles(terminal, path, [{ path, byteLength: svg.length, chunks: once(svg) }]);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

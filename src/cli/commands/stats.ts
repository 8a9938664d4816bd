/** `gguf-native stats`: what the values of tensors look like. */
import { type GgufTensor, openSync } from "../../index";
import { expectPositionals, parse, UsageError, wholeNumber } from "../args";
import type { Command } from "../main";
import { SPLIT_OPTIONS } from "../model";
import { writeFiles } from "../output/files";
import { histogramLines, histogramSvg } from "../output/histogram";
import { heading, outputWidth, print, printJson } from "../output/terminal";
import { escapeText, float32Text, grouped, humanBytes, shapeText, table } from "../output/text";
import { selectTensors } from "../select";
import type { Scan } from "../work/scan";
import {
  type Distribution,
  distributionsOf,
  finiteCount,
  meanOf,
  scanRows,
  scanTensors,
} from "../work/statistics";

const HELP = `Usage: gguf-native stats FILE TENSOR... [options]

Minimum, maximum, mean, standard deviation, zeros, NaNs and infinities of a
tensor, and a histogram of its values. TENSOR is a name or a glob (* ? [a-z]);
of more than one tensor it shows a table.

  --bins N      bars of the histogram, 1 to 1000 (default 20)
  --svg FILE    draws the histogram of one tensor as a picture
  --json        everything as JSON; numbers that it lacks are "NaN", "Infinity"
  --no-splits   of one file of a split model alone

Infinities and NaNs are counted, and left out of everything else.

Examples:
  gguf-native stats model.gguf blk.0.attn_q.weight
  gguf-native stats model.gguf '*norm*'
  gguf-native stats model.gguf output.weight --bins 100 --svg output.svg
`;

/** What there is to say about a tensor. */
interface TensorStats extends Distribution {
  tensor: GgufTensor;
  scan: Scan;
}

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, {
    bins: { type: "string" },
    svg: { type: "string" },
    json: { type: "boolean" },
    ...SPLIT_OPTIONS,
  });
  const [path, ...patterns] = expectPositionals(positionals, "FILE", "TENSOR...");
  const bins = wholeNumber("--bins", values.bins, 1, 1000) ?? 20;
  const source = { path, splits: !values["no-splits"] };
  const file = openSync(path, { splits: source.splits, partial: true });
  try {
    const tensors = selectTensors(file, path, patterns);
    if (values.svg !== undefined && tensors.length > 1) {
      throw new UsageError(`--svg draws one tensor, not ${tensors.length}`);
    }
    const scans = await scanTensors(source, tensors);
    const distributions = await distributionsOf(source, tensors, scans, bins);
    const all = tensors.map(
      (tensor): TensorStats => ({
        tensor,
        scan: scans.get(tensor.name) as Scan,
        ...(distributions.get(tensor.name) as Distribution),
      }),
    );
    const [only] = all as [TensorStats];
    if (values.svg !== undefined) await writeSvg(values.svg, only);
    if (values.json) printJson({ path, tensors: all.map(json) });
    else if (all.length === 1) print(details(only));
    else print(overview(all));
  } finally {
    file.close();
  }
  return 0;
}

export const command: Command = { help: HELP, run };

function json({ tensor, scan, std, counts }: TensorStats): Record<string, unknown> {
  const { name, type, shape } = tensor;
  const { elements, nan, positiveInfinity, negativeInfinity, zeros, min, max } = scan;
  return {
    ...{ name, type, shape, elements, nan, positiveInfinity, negativeInfinity, zeros },
    // Where no value is finite there is none of these.
    ...(finiteCount(scan) === 0
      ? {}
      : { min, max, mean: meanOf(scan), std, histogram: { min, max, counts } }),
  };
}

function details({ tensor, scan, std, counts }: TensorStats): string[] {
  const rows = [
    ["type", tensor.type],
    ["shape", shapeText(tensor.shape)],
    ["values", `${grouped(scan.elements)} from ${humanBytes(tensor.byteLength)}`],
    ...scanRows(scan, std),
  ];
  const width = outputWidth();
  const lines = [
    heading(escapeText(tensor.name)),
    ...table([{ title: "" }, { title: "", min: 20 }], rows, width),
  ];
  // Equal values are all in the first bin, and the others would be empty places at the same edge.
  const bins = scan.max > scan.min ? counts : counts.slice(0, 1);
  if (finiteCount(scan) > 0) lines.push("", ...histogramLines(scan, bins, width));
  return lines;
}

function overview(all: readonly TensorStats[]): string[] {
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
  return table(columns, rows, outputWidth());
}

function shortNumber(value: number): string {
  return float32Text(Number(value.toPrecision(3)));
}

async function writeSvg(path: string, { tensor, scan, counts }: TensorStats): Promise<void> {
  if (finiteCount(scan) === 0) throw new Error(`tensor '${tensor.name}' has no finite values to draw`);
  const title = `${escapeText(tensor.name)} (${tensor.type}, ${shapeText(tensor.shape)})`;
  const svg = Buffer.from(histogramSvg(title, scan, counts));
  await writeFiles(path, [{ path, byteLength: svg.length, chunks: once(svg) }]);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

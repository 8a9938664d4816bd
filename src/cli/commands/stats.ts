/** `gguf-native stats`: what the values of tensors look like. */
import { basename } from "node:path";
import { statsRows } from "../../describe/stats-text";
import { counted, escapeText, float32Text, grouped, humanBytes, shapeText } from "../../describe/text";
import type { GgufModelTensor, TensorStats } from "../../index";
import { checkReplaced, type Origin } from "../../writer/replaced-files";
import { MODEL_HELP, MODEL_OPTIONS, type OpenedModel, withPartialModel } from "../arguments/open-model";
import { expectPositionals, oneOf, parse, wholeNumber } from "../arguments/parse";
import { canDequantize, selectTensors, tensorsWhere } from "../arguments/select-tensors";
import type { Command } from "../command";
import { histogramLines } from "../output/bar-chart";
import { histogramSvg } from "../output/histogram-svg";
import { stripsSvg } from "../output/strips-svg";
import { type Column, wrap } from "../output/table";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, writeSvg } from "../output/write-files";
import { tensorStats } from "../work/tensor-stats";

const HELP = `Usage: gguf-native stats FILE|URL [TENSOR...] [options]

Minimum, maximum, mean, standard deviation, zeros, NaNs and infinities of a
tensor, and a histogram of its values. TENSOR is a name or a glob (* ? [a-z]);
without one, all tensors are read. Several are shown as a table, without
histograms. The tensor of a URL is fetched twice for its histogram.

  --bins N            bars of the histogram, 1 to 1000 (default 20); with --json
                      a histogram of each of several tensors, too
  --svg OUT           a picture: of one tensor its histogram; of several a strip
                      for each on one scale, with minimum, mean, deviation and
                      maximum
  --sort KEY          the order of several tensors: std, max (of magnitudes) or
                      zeros (their share), the largest first
${FORCE_HELP}  --json              everything as JSON; the numbers that it lacks are strings:
                      "NaN", "Infinity"
${MODEL_HELP}
Infinities and NaNs are counted, and left out of everything else.

Examples:
  gguf-native stats model.gguf blk.0.attn_q.weight
  gguf-native stats model.gguf
  gguf-native stats model.gguf '*norm*'
  gguf-native stats model.gguf output.weight --bins 100 --svg output.svg
  gguf-native stats model.gguf --svg model.svg
`;

/** Bars where nothing else is said. */
const DEFAULT_BINS = 20;
/** What tensors are sorted by. */
const ORDERS = {
  std: ({ finite, std }: TensorStats) => (finite === 0 ? -1 : std),
  max: ({ finite, min, max }: TensorStats) => (finite === 0 ? -1 : Math.max(-min, max)),
  zeros: ({ count, zeros }: TensorStats) => (count === 0 ? -1 : zeros / count),
};
const SORTS = ["std", "max", "zeros"] as const;
const OPTIONS = {
  bins: { type: "string" },
  svg: { type: "string" },
  sort: { type: "string", choices: SORTS },
  json: { type: "boolean" },
  ...FORCE_OPTION,
  ...MODEL_OPTIONS,
} as const;

/** Everything that is shown of a tensor. */
interface ShownTensor {
  tensor: GgufModelTensor;
  stats: TensorStats;
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, ...patterns] = expectPositionals(positionals, "FILE|URL", "[TENSOR...]");
  const bins = wholeNumber("--bins", values.bins, 1, 1000);
  const sort = oneOf("--sort", values.sort, SORTS);
  await withPartialModel(path, values, async (model) => {
    const origin: Origin = { model: model.file.paths, isGguf: false };
    // Before everything is read for it.
    if (values.svg !== undefined) await checkReplaced([values.svg], origin, values.force ?? false);
    const tensors =
      patterns.length > 0 ? selectTensors(model.file, model.path, patterns) : knownTensors(model, terminal);
    // No histogram that nobody sees.
    const shownBins = tensors.length === 1 ? (bins ?? DEFAULT_BINS) : values.json ? bins : undefined;
    const found = await tensorStats(terminal, model, tensors, shownBins);
    const all = tensors.map((tensor, i): ShownTensor => ({ tensor, stats: found[i] as TensorStats }));
    if (sort !== undefined) all.sort((a, b) => ORDERS[sort](b.stats) - ORDERS[sort](a.stats));
    const [only] = all as [ShownTensor];
    if (values.svg !== undefined) {
      await writeSvg(values.svg, pictureOf(model.path, all), origin, values.force, terminal);
    }
    if (values.json) terminal.printJson({ path: model.path, tensors: all.map(json) });
    else if (all.length === 1) terminal.print(details(only, terminal));
    else terminal.print(overview(all, terminal));
  });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

function json({ tensor, stats }: ShownTensor): Record<string, unknown> {
  const { name, type, shape } = tensor;
  const { count: elements, nan, positiveInfinity, negativeInfinity, zeros, min, max, mean, std } = stats;
  const counted = { name, type, shape, elements, nan, positiveInfinity, negativeInfinity, zeros };
  if (stats.finite === 0) return counted;
  const { counts } = stats.histogram ?? {};
  const histogram = counts && { histogram: { min, max, counts: Array.from(counts) } };
  return { ...counted, min, max, mean, std, ...histogram };
}

function details({ tensor, stats }: ShownTensor, terminal: Terminal): string[] {
  const rows: [string, string][] = [
    ["type", tensor.type],
    ["shape", shapeText(tensor.shape)],
    ["values", `${grouped(stats.count)} from ${humanBytes(tensor.byteLength)}`],
    ...statsRows(stats, { withStd: true }),
  ];
  const title = wrap(escapeText(tensor.name), terminal.width);
  const lines = [...title.map(terminal.heading), ...terminal.facts(rows)];
  if (stats.histogram === undefined) return lines;
  // Equal values are all in the first bin; the others would be empty bars that begin at the same value.
  const counts = Array.from(stats.histogram.counts);
  const bars = stats.max > stats.min ? counts : counts.slice(0, 1);
  return [...lines, "", ...histogramLines(stats, bars, terminal)];
}

function overview(all: readonly ShownTensor[], terminal: Terminal): string[] {
  const rows = all.map(({ tensor, stats }) => {
    const numbers = [stats.min, stats.max, stats.mean, stats.std];
    const cells = numbers.map((number) => (stats.finite > 0 ? shortNumber(number) : "-"));
    return [escapeText(tensor.name), ...cells, grouped(stats.zeros), grouped(stats.count - stats.finite)];
  });
  const number = (title: string): Column => ({ title, align: "right" });
  const columns: Column[] = [
    { title: "name", min: 22 },
    number("min"),
    number("max"),
    { ...number("mean"), drop: 1 },
    number("std"),
    { ...number("zeros"), drop: 0, paint: terminal.quiet },
    {
      ...number("not finite"),
      drop: 2,
      paint: (text) => (text === "0" ? terminal.quiet : terminal.bad)(text),
    },
  ];
  return [...terminal.table(columns, rows, true)];
}

function shortNumber(value: number): string {
  return float32Text(Number(value.toPrecision(3)));
}

/** All tensors that can be turned into numbers; says how many others there are. */
function knownTensors({ file, path }: OpenedModel, terminal: Terminal): GgufModelTensor[] {
  const known = tensorsWhere(file, path, canDequantize);
  if (known.length === 0) throw new Error(`${path} has no tensors to look at`);
  const others = file.tensors.size - known.length;
  if (others > 0) terminal.complain(`${counted(others, "tensor")} of unknown types left out`);
  return known;
}

/** A histogram of one tensor, a strip for each of several. */
function pictureOf(model: string, all: readonly ShownTensor[]): string {
  return all.length > 1
    ? stripsSvg(`${escapeText(basename(model))}: ${counted(all.length, "tensor")}`, all)
    : histogramPicture(all[0] as ShownTensor);
}

function histogramPicture({ tensor, stats }: ShownTensor): string {
  const { name, type, shape } = tensor;
  const { histogram } = stats;
  if (histogram === undefined) throw new Error(`tensor '${name}' has no finite values to draw`);
  const title = `${escapeText(name)} (${type}, ${shapeText(shape)})`;
  return histogramSvg(title, stats, Array.from(histogram.counts));
}

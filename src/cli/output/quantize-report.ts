/** What became of the tensors of a model that was quantized or converted, for people. */
import { counted, escapeText, humanBytes } from "../../describe/text";
import type { QuantizedTensor, QuantizeReport } from "../../index";
import { shownPath } from "../arguments/open-model";
import type { Column } from "./table";
import type { Terminal } from "./terminal";
import { replacedLine } from "./write-files";

/** Prints it, as JSON with all figures where that is wanted. */
export function printQuantizeReport(
  report: QuantizeReport,
  path: string,
  output: string,
  values: { json?: boolean | undefined; "dry-run"?: boolean | undefined; force?: boolean | undefined },
  terminal: Terminal,
): void {
  const { json, "dry-run": dryRun = false, force } = values;
  if (json) terminal.printJson({ path: shownPath(path), output: dryRun ? null : output, ...report });
  else {
    const end = dryRun ? [...replacedLine(output, report.replaces, force), "nothing was written"] : [];
    terminal.print([
      ...table(report, dryRun, terminal),
      ...summary(report, output),
      ...beside(report, terminal),
      ...end,
    ]);
  }
}

/** The tensors that get another type: as they are in the file, or with their errors, the largest first. */
function table({ tensors }: QuantizeReport, dryRun: boolean, terminal: Terminal): string[] {
  const changed = tensors.filter(({ from, to, isMerged }) => from !== to || isMerged);
  const shown = dryRun ? changed : changed.sort((a, b) => snrOf(a) - snrOf(b));
  if (shown.length === 0) return [];
  const number = (title: string): Column => ({ title, align: "right" });
  const columns: Column[] = [
    { title: "tensor", min: 22 },
    { title: "from", paint: terminal.type, drop: 1 },
    { title: "to", paint: terminal.type },
    number("size"),
    dryRun ? number("bits") : number("SNR"),
    { title: "", drop: 0, paint: terminal.quiet },
  ];
  const rows = shown.map((each) => [
    escapeText(each.name),
    each.from,
    each.to,
    humanBytes(each.bytes),
    dryRun ? bits((8 * each.bytes) / each.elementCount) : snrText(each),
    remark(each),
  ]);
  return [...terminal.table(columns, rows, true)];
}

function snrOf({ error }: QuantizedTensor): number {
  return error?.snr ?? Number.POSITIVE_INFINITY;
}

function snrText(tensor: QuantizedTensor): string {
  const snr = snrOf(tensor);
  return snr === Number.POSITIVE_INFINITY ? "exact" : `${snr.toFixed(1)} dB`;
}

function remark({ wanted, lacksImportance }: QuantizedTensor): string {
  if (lacksImportance) return "needs importance";
  return wanted === undefined ? "" : `rows do not fit ${wanted}`;
}

/** What was chosen for a size among the mixes of about that size. */
function beside({ choice }: QuantizeReport, terminal: Terminal): string[] {
  if (choice === undefined) return [];
  const { chosen, mixes } = choice;
  const columns = ["types", "size", "bits", "SNR"].map((title, i): Column => ({ title, align: i ? "right" : "left" }));
  const rows = [...mixes, { ...chosen, type: "chosen" }]
    .sort((a, b) => b.byteLength - a.byteLength)
    .map(({ type, byteLength, bitsPerWeight, snr }) => [
      type,
      humanBytes(byteLength),
      bits(bitsPerWeight),
      snr === Infinity ? "exact" : `${snr.toFixed(1)} dB`,
    ]);
  const about = "SNR here: of all matrices together, by importance if given, in a sample of rows";
  return ["", ...terminal.table(columns, rows, true), terminal.quiet(about)];
}

function bits(count: number): string {
  return Number.isFinite(count) ? count.toFixed(2) : "-";
}

function summary(report: QuantizeReport, output: string): string[] {
  const { tensors, bitsPerWeight, bitsPerWeightBefore, byteLength } = report;
  const copied = tensors.filter(({ from, to, isMerged }) => from === to && !isMerged).length;
  const size = `${humanBytes(byteLength)}, ${bits(bitsPerWeight)} bits per weight (${bits(bitsPerWeightBefore)} before)`;
  const lines = copied === tensors.length ? [] : [""];
  if (copied > 0) lines.push(`${counted(copied, "tensor")} copied as ${copied === 1 ? "it is" : "they are"}`);
  return [...lines, `${escapeText(output)}: ${size}`];
}

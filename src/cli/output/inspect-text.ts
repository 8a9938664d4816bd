/** What `gguf-native inspect` shows to people. */
import { basename } from "node:path";
import { type InspectView, typeTotals } from "./inspect-view";
import { metadataText, stringText } from "./metadata-text";
import type { Terminal } from "./terminal";
import { type Column, counted, escapeText, grouped, humanBytes, humanCount, shapeText, table } from "./text";

/** The lines of the report. */
export function inspectLines(view: InspectView, terminal: Terminal): string[] {
  const { sections } = view;
  const parts: string[][] = [];
  if (sections.summary) parts.push(summary(view, terminal), typeMix(view, terminal));
  if (sections.tensors) parts.push(tensorList(view, terminal));
  if (sections.metadata) parts.push(metadataList(view, terminal));
  return parts.filter((part) => part.length > 0).flatMap((part, i) => (i === 0 ? part : ["", ...part]));
}

function summary({ file, path }: InspectView, terminal: Terminal): string[] {
  const { metadata, tensors } = file;
  const rows: [string, string][] = [];
  const architecture = stringText(metadata, "general.architecture");
  if (architecture !== undefined) rows.push(["architecture", architecture]);
  const name = stringText(metadata, "general.name");
  if (name !== undefined) rows.push(["name", name]);
  const endianness = file.byteOrder === "big" ? ", big-endian" : "";
  const bytes = `${humanBytes(file.byteLength)} (${counted(file.byteLength, "byte")})`;
  rows.push(["size", `${bytes}, GGUF version ${file.version}${endianness}`]);
  if (file.paths.length > 1) rows.push(["files", grouped(file.paths.length)]);
  let parameters = 0;
  for (const tensor of tensors.values()) parameters += tensor.elementCount;
  rows.push(["parameters", `${humanCount(parameters)} in ${counted(tensors.size, "tensor")}`]);
  const contextKey = `${architecture}.context_length`;
  // An array is not decoded only to find that it is no number.
  const context = metadata.typeOf(contextKey)?.type === "array" ? undefined : metadata.get(contextKey);
  if (typeof context === "number" || typeof context === "bigint") {
    rows.push(["context length", grouped(Number(context))]);
  }
  return [
    terminal.heading(escapeText(basename(path))),
    ...table([{ title: "" }, { title: "", min: 20 }], rows, terminal.width),
  ];
}

function typeMix({ file }: InspectView, terminal: Terminal): string[] {
  const totals = typeTotals(file.tensors.values());
  if (totals.size === 0) return [];
  let allBytes = 0;
  for (const { bytes } of totals.values()) allBytes += bytes || 0;
  const rows = Array.from(totals, ([type, { tensors, elements, bytes }]) => [
    type,
    grouped(tensors),
    humanCount(elements),
    humanBytes(bytes),
    elements > 0 && !Number.isNaN(bytes) ? ((bytes * 8) / elements).toFixed(2) : "?",
    allBytes > 0 && !Number.isNaN(bytes) ? `${((bytes / allBytes) * 100).toFixed(1)} %` : "?",
  ]);
  const titles = ["tensors", "weights", "bytes", "bits/weight", "share"];
  const columns = [{ title: "type" }, ...titles.map((title) => ({ title, align: "right" as const }))];
  return [terminal.heading("Types"), ...table(columns, rows, terminal.width)];
}

function tensorList({ file, tensors }: InspectView, terminal: Terminal): string[] {
  const split = file.paths.length > 1;
  const columns = [
    { title: "name", min: 16 },
    { title: "type" },
    { title: "shape", min: 12 },
    { title: "bytes", align: "right" as const },
    { title: "offset", align: "right" as const },
    ...(split ? [{ title: "file", align: "right" as const }] : []),
  ];
  const rows = tensors.map((tensor) => [
    escapeText(tensor.name),
    tensor.type,
    shapeText(tensor.shape),
    humanBytes(tensor.byteLength),
    String(tensor.offset),
    ...(split ? [String(file.paths.indexOf(tensor.path ?? "") + 1)] : []),
  ]);
  return section("Tensors", columns, rows, file.tensors.size, terminal);
}

function metadataList({ file, keys }: InspectView, terminal: Terminal): string[] {
  const rows = keys.map((key) => [escapeText(key), ...metadataText(file.metadata, key)]);
  const columns = [{ title: "key", min: 24 }, { title: "type" }, { title: "value", min: 12 }];
  return section("Metadata", columns, rows, file.metadata.size, terminal);
}

/** A table under its title; `total` is what there would be without a filter. */
function section(
  title: string,
  columns: readonly Column[],
  rows: readonly string[][],
  total: number,
  terminal: Terminal,
): string[] {
  const count = rows.length === total ? grouped(total) : `${grouped(rows.length)} of ${grouped(total)}`;
  const lines = rows.length > 0 ? table(columns, rows, terminal.width) : [];
  return [terminal.heading(`${title} (${count})`), ...lines];
}

/**
 * What `gguf-native inspect` shows to people, before it is laid out: in a terminal by report-text.ts, as Markdown by
 * report-markdown.ts.
 */
import { basename } from "node:path";
import { groupTensors, groupTitle, isBlockGroup, typesText } from "../../describe/blocks";
import { foreignRemarks } from "../../describe/foreign";
import { keysByKind } from "../../describe/keys-by-kind";
import { CACHE_TYPES, type MemoryUse } from "../../describe/memory";
import { memoryRemarks } from "../../describe/memory-remarks";
import { metadataText } from "../../describe/metadata-text";
import { summaryFacts } from "../../describe/summary";
import { counted, escapeText, grouped, humanBytes, humanCount, shapeText } from "../../describe/text";
import { typeTotals } from "../../describe/type-totals";
import type { GgufModel, GgufModelTensor } from "../../index";
import type { SafetensorsTensor } from "../../safetensors/model";
import type { InspectView } from "./inspect-view";
import { again, type Listed, MOST_ARRANGED } from "./listed";
import type { Column } from "./table";
import type { Terminal } from "./terminal";

/** A part of a report; what is in it is escaped. */
export interface Section {
  readonly title: string;
  readonly facts?: readonly (readonly [name: string, value: string])[];
  readonly table?: {
    readonly columns: readonly ReportColumn[];
    readonly groups: readonly Group[];
  };
  readonly remarks?: readonly string[];
}

export interface ReportColumn extends Column {
  /** Whether it is text of the file, such as a name, rather than of this program. */
  readonly isVerbatim?: boolean;
}

/** Rows that belong together. */
export interface Group {
  /** Undefined for rows that have no title. */
  readonly title?: string;
  /** Whether the title is only for pages, where a list can be long. */
  readonly isForPages?: boolean;
  /** Gone through more than once. */
  readonly rows: Iterable<readonly string[]>;
}

/** The parts of the report. */
export function inspectReport(view: InspectView, terminal: Terminal): Section[] {
  const { sections, memory } = view;
  const report: Section[] = [];
  if (sections.summary) report.push(summary(view), ...typeMix(view, terminal));
  if (memory !== undefined) report.push(...memorySections(memory, terminal));
  if (sections.metadata) report.push(metadataList(view, terminal));
  if (sections.tensors) report.push(tensorList(view, terminal));
  return report;
}

function summary({ file, path }: InspectView): Section {
  return { title: escapeText(basename(path)), facts: summaryFacts(file) };
}

function typeMix({ file }: InspectView, terminal: Terminal): Section[] {
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
  const columns = [
    { title: "type", paint: terminal.type },
    number("tensors", 2),
    number("weights", 1),
    number("bytes"),
    number("bits/weight", 0),
    number("share"),
  ];
  return [
    {
      title: "Types",
      table: { columns, groups: [{ rows }] },
      remarks: [...secondScales(file), ...storedTypes(file), ...foreignRemarks(file)],
    },
  ];
}

/** What is beside weights of type NVFP4, and not in their numbers. */
function secondScales(file: GgufModel<GgufModelTensor>): string[] {
  let count = 0;
  let example = "";
  for (const { name, scale } of file.tensors.values()) {
    if (scale === undefined) continue;
    if (count++ === 0) example = `${escapeText(scale.name)} for ${escapeText(name)}`;
  }
  if (count === 0) return [];
  const all = count === 1 ? example : `${example}, ...`;
  return [`${counted(count, "NVFP4 tensor")} with a second scale, which their numbers lack: ${all}`];
}

/** What is stored as a type of safetensors that ggml does not have. */
function storedTypes(file: GgufModel<GgufModelTensor>): string[] {
  const counts = new Map<string, number>();
  for (const tensor of file.tensors.values()) {
    // Not by its class, which a command for GGUF files would load for nothing.
    const { dtype } = tensor as Partial<Pick<SafetensorsTensor, "dtype">>;
    if (dtype === undefined || dtype === tensor.type) continue;
    const what = `${dtype} in the file, ${tensor.type} here`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return Array.from(counts, ([what, count]) => `${counted(count, "tensor")}: ${what}`);
}

/** A column of numbers, on the right. */
function number(title: string, drop?: number): ReportColumn {
  return { title, align: "right", ...(drop === undefined ? {} : { drop }) };
}

function memorySections({ weights, cache }: MemoryUse, terminal: Terminal): Section[] {
  const typeRows = Array.from(weights.types, ([type, { tensors, bytes }]) => [
    type,
    grouped(tensors),
    humanBytes(bytes),
  ]);
  const typeColumns = [{ title: "type", paint: terminal.type }, number("tensors"), number("bytes")];
  const { context, perToken, bytes, isAtMost } = cache;
  const amount = (value: number | null): string =>
    value === null ? "?" : `${isAtMost && value > 0 ? "≤ " : ""}${humanBytes(value)}`;
  const rows = CACHE_TYPES.map((type) => {
    const at = bytes[type];
    return [type, amount(perToken[type]), amount(at), amount(at === null ? null : at + weights.bytes)];
  });
  const columns = [
    { title: "cache", paint: terminal.type },
    number("per token"),
    number(context === null ? "whole" : `at ${grouped(context)}`),
    number("total"),
  ];
  return [
    {
      title: `Weights (${humanBytes(weights.bytes)})`,
      table: { columns: typeColumns, groups: [{ rows: typeRows }] },
      remarks: Array.from(weights.types.values()).some(({ bytes }) => Number.isNaN(bytes))
        ? ["without tensors of types that this version does not know"]
        : [],
    },
    {
      title: `Cache of keys and values${context === null ? "" : ` for ${counted(context, "token")}`}`,
      table: { columns, groups: [{ rows }] },
      remarks: memoryRemarks(cache),
    },
  ];
}

function metadataList({ file, keys }: InspectView, terminal: Terminal): Section {
  const columns = [
    { title: "key", min: 40, isVerbatim: true },
    { title: "type", drop: 0, paint: terminal.type },
    { title: "value", min: 20, isVerbatim: true },
  ];
  const title = titleOf("Metadata", keys.count, file.metadata.size);
  return { title, table: { columns, groups: keyGroups(file, keys) } };
}

/** Keys of one kind together, unless they are too many. */
function keyGroups({ metadata }: InspectView["file"], keys: InspectView["keys"]): Group[] {
  const row = (key: string): string[] => [escapeText(key), ...metadataText(metadata, key)];
  if (keys.count > MOST_ARRANGED) return [{ rows: rowsOf(keys, row) }];
  return Array.from(keysByKind(metadata, keys), ([kind, group]) => {
    return { title: escapeText(kind) || "Others", isForPages: true, rows: group.map(row) };
  });
}

/** A row for each item, made each time that they are gone through. */
function rowsOf<T>(items: Listed<T>, row: (item: T) => string[]): Iterable<string[]> {
  return again(function* () {
    for (const item of items) yield row(item);
  });
}

function tensorList(view: InspectView, terminal: Terminal): Section {
  const { file, tensors, isGrouped, offsets } = view;
  const split = file.paths.length > 1;
  const columns = [
    { title: "name", min: 32, isVerbatim: true },
    { title: "type", min: 12, paint: terminal.type },
    { title: "shape", min: 12, ...(offsets && { drop: 0 }) },
    number("bytes", offsets ? 2 : undefined),
    ...(isGrouped ? [] : [{ ...number("offset", offsets ? undefined : 0), paint: terminal.quiet }]),
    ...(split && !isGrouped ? [number("file", 1)] : []),
  ];
  const row = (tensor: GgufModelTensor): string[] => [
    escapeText(tensor.name),
    tensor.type,
    shapeText(tensor.shape),
    humanBytes(tensor.byteLength),
    ...(isGrouped ? [] : [String(tensor.offset)]),
    ...(split && !isGrouped ? [fileNumber(file, tensor)] : []),
  ];
  return {
    title: titleOf("Tensors", tensors.count, file.tensors.size),
    table: {
      columns,
      groups: isGrouped ? groupedRows(Array.from(tensors), row) : [{ rows: rowsOf(tensors, row) }],
    },
  };
}

/** Which file of a split model a tensor is in. */
function fileNumber(file: GgufModel<GgufModelTensor>, { path }: GgufModelTensor): string {
  return String(file.paths.indexOf(path ?? "") + 1);
}

function groupedRows(tensors: readonly GgufModelTensor[], row: (tensor: GgufModelTensor) => string[]): Group[] {
  const groups: { title?: string; rows: string[][] }[] = [];
  for (const group of groupTensors(tensors)) {
    if (!isBlockGroup(group)) {
      const last = groups.at(-1);
      if (last !== undefined && last.title === undefined) last.rows.push(row(group));
      else groups.push({ rows: [row(group)] });
      continue;
    }
    let bytes = 0;
    const rows = Array.from(group.members, ([member, all]) => {
      const [{ shape }] = all as [GgufModelTensor];
      const isSame = all.every((tensor) => String(tensor.shape) === String(shape));
      const sum = all.reduce((total, { byteLength }) => total + byteLength, 0);
      bytes += sum;
      return [escapeText(member), typesText(all), isSame ? shapeText(shape) : "various", humanBytes(sum)];
    });
    groups.push({ title: `${escapeText(groupTitle(group))}, ${humanBytes(bytes)}`, rows });
  }
  return groups;
}

/** The title of a list; `total` is what there would be without a filter. */
function titleOf(title: string, count: number, total: number): string {
  return `${title} (${count === total ? grouped(total) : `${grouped(count)} of ${grouped(total)}`})`;
}

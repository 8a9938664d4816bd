/** `gguf-native inspect`: what a file holds, for people; for programs see inspect-json.ts. */
import { basename } from "node:path";
import {
  GgufError,
  type GgufFile,
  type GgufTensor,
  type GgufValue,
  type GgufValueType,
  openSync,
} from "../index";
import { expectPositionals, parse } from "./args";
import { writeJson } from "./inspect-json";
import type { Command } from "./main";
import {
  counted,
  escapeText,
  float32Text,
  grouped,
  heading,
  humanBytes,
  humanCount,
  outputWidth,
  shapeText,
  table,
} from "./text";

const HELP = `Usage: gguf-native inspect FILE [--tensors] [--metadata] [--json]

Shows what a GGUF file holds: a summary, then every tensor, then every metadata
key. Shapes are as stored: the contiguous dimension first.

  --tensors    only the tensors
  --metadata   only the metadata
  --json       everything, exactly: long arrays in full, 64-bit integers as
               strings, as are the numbers that JSON lacks ("NaN", "Infinity",
               "-0"); the bytes of text that is not UTF-8 in hexadecimal

A file whose tensor data is cut off is shown all the same; the exit code is 1.

Examples:
  gguf-native inspect model.gguf
  gguf-native inspect --tensors model.gguf | grep attn
  gguf-native inspect --json model.gguf | jq '.metadata["general.name"].value'
`;

/** What to show. */
export interface Sections {
  summary: boolean;
  tensors: boolean;
  metadata: boolean;
}

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, {
    json: { type: "boolean" },
    tensors: { type: "boolean" },
    metadata: { type: "boolean" },
  });
  expectPositionals(positionals, "FILE");
  const all = !values.tensors && !values.metadata;
  const sections = { summary: all, tensors: all || !!values.tensors, metadata: all || !!values.metadata };
  const path = positionals[0] as string;
  const { file, trouble } = openWhatIsThere(path);
  try {
    if (values.json) writeJson(file, path, sections, (text) => process.stdout.write(text));
    else process.stdout.write(`${report(file, path, sections).join("\n")}\n`);
  } finally {
    file.close();
  }
  if (trouble === undefined) return 0;
  process.stderr.write(`gguf-native: ${escapeText(trouble.message)}\n`);
  return 1;
}

/** Opens a file even if its tensor data is cut off, and says so. */
function openWhatIsThere(path: string): { file: GgufFile; trouble?: GgufError } {
  try {
    return { file: openSync(path) };
  } catch (error) {
    if (!(error instanceof GgufError) || error.code !== "ERR_GGUF_TRUNCATED") throw error;
    return { file: openSync(path, { partial: true }), trouble: error };
  }
}

export const command: Command = { help: HELP, run };

function report(file: GgufFile, path: string, sections: Sections): string[] {
  const width = outputWidth();
  const parts: string[][] = [];
  if (sections.summary) parts.push(summary(file, path, width), typeMix(file, width));
  if (sections.tensors) parts.push(tensorList(file, width));
  if (sections.metadata) parts.push(metadataList(file, width));
  return parts.filter((part) => part.length > 0).flatMap((part, i) => (i === 0 ? part : ["", ...part]));
}

function summary(file: GgufFile, path: string, width: number): string[] {
  const { metadata, tensors } = file;
  const text = (key: string): string | undefined =>
    metadata.typeOf(key)?.type === "string" ? metadata.string(key) : undefined;
  const architecture = text("general.architecture");
  const rows: [string, string][] = [];
  if (architecture !== undefined) rows.push(["architecture", escapeText(architecture)]);
  const name = text("general.name");
  if (name !== undefined) rows.push(["name", escapeText(name)]);
  const endianness = file.byteOrder === "big" ? ", big-endian" : "";
  const bytes = `${humanBytes(file.byteLength)} (${counted(file.byteLength, "byte")})`;
  rows.push(["size", `${bytes}, GGUF version ${file.version}${endianness}`]);
  let parameters = 0;
  for (const tensor of tensors.values()) parameters += tensor.elementCount;
  rows.push(["parameters", `${humanCount(parameters)} in ${counted(tensors.size, "tensor")}`]);
  const context = metadata.get(`${architecture}.context_length`);
  if (typeof context === "number" || typeof context === "bigint")
    rows.push(["context length", grouped(Number(context))]);
  return [
    heading(escapeText(basename(path))),
    ...table([{ title: "" }, { title: "", min: 20 }], rows, width),
  ];
}

/** Tensors, weights and bytes of each type, the largest first. */
export function typeTotals(
  file: GgufFile,
): Map<string, { tensors: number; elements: number; bytes: number }> {
  const totals = new Map<string, { tensors: number; elements: number; bytes: number }>();
  for (const { type, elementCount, byteLength } of file.tensors.values()) {
    const total = totals.get(type) ?? { tensors: 0, elements: 0, bytes: 0 };
    total.tensors++;
    total.elements += elementCount;
    total.bytes += byteLength;
    totals.set(type, total);
  }
  return new Map([...totals].sort(([, a], [, b]) => (b.bytes || 0) - (a.bytes || 0)));
}

function typeMix(file: GgufFile, width: number): string[] {
  const totals = typeTotals(file);
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
  return [heading("Types"), ...table(columns, rows, width)];
}

function tensorList(file: GgufFile, width: number): string[] {
  const columns = [
    { title: "name", min: 16 },
    { title: "type" },
    { title: "shape", min: 12 },
    { title: "bytes", align: "right" as const },
    { title: "offset", align: "right" as const },
  ];
  const row = (tensor: GgufTensor): string[] => [
    escapeText(tensor.name),
    tensor.type,
    shapeText(tensor.shape),
    humanBytes(tensor.byteLength),
    String(tensor.offset),
  ];
  const rows = Array.from(file.tensors.values(), row);
  return [
    heading(`Tensors (${grouped(rows.length)})`),
    ...(rows.length > 0 ? table(columns, rows, width) : []),
  ];
}

function metadataList(file: GgufFile, width: number): string[] {
  const { metadata } = file;
  const rows = Array.from(metadata.keys(), (key) => {
    const type = metadata.typeOf(key) as GgufValueType;
    return [
      escapeText(key),
      typeText(type),
      valueText(metadata.get(key) as GgufValue, type.type === "float32"),
    ];
  });
  const columns = [{ title: "key", min: 24 }, { title: "type" }, { title: "value", min: 12 }];
  return [
    heading(`Metadata (${grouped(rows.length)})`),
    ...(rows.length > 0 ? table(columns, rows, width) : []),
  ];
}

function typeText(type: GgufValueType): string {
  return type.type === "array" ? `${type.elementType}[${type.length}]` : type.type;
}

/** Enough of a value to fill any line; the table cuts it to the line at hand. */
const PREVIEW = 400;

function valueText(value: GgufValue, isFloat32: boolean): string {
  if (typeof value === "string") return escapeText(value.slice(0, PREVIEW));
  if (typeof value === "number" && isFloat32) return float32Text(value);
  if (typeof value !== "object") return Object.is(value, -0) ? "-0" : String(value);
  const parts: string[] = [];
  for (let i = 0, length = 0; i < value.length && length < PREVIEW; i++) {
    const element = (value as ArrayLike<GgufValue>)[i] as GgufValue;
    const plain = valueText(element, value instanceof Float32Array);
    const text = typeof element === "string" ? `"${plain}"` : plain;
    parts.push(text);
    length += text.length + 2;
  }
  return `[${parts.join(", ")}${parts.length < value.length ? ", ..." : ""}]`;
}

/** `gguf-native hash`: what a model consists of, in digests that do not depend on how its file is laid out. */
import { createHash } from "node:crypto";
import { type GgufFile, type GgufTensor, openSync } from "../index";
import { expectPositionals, parse } from "./args";
import { exactJson, metadataValueJson } from "./json";
import { LAYOUT_KEYS } from "./layout-keys";
import type { Command } from "./main";
import { print, withProgress } from "./terminal";
import { escapeText } from "./text";
import { spread } from "./work/spread";

const HELP = `Usage: gguf-native hash FILE... [--whole] [--json]

The SHA-256 of every tensor's data, as stored, and of the whole: the names,
types, shapes and data of all tensors, and all metadata. The whole does not
change with what is only layout: alignment and padding, the order of keys and of
tensors, the version of the format, how a model is split into files.

  --whole   only the whole: one line for each file
  --json    as JSON, the digest of the metadata alone as well

Examples:
  gguf-native hash model.gguf
  gguf-native hash --whole *.gguf
`;

interface Digests {
  path: string;
  /** Of the whole. */
  sha256: string;
  metadata: string;
  tensors: { name: string; sha256: string }[];
}

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, { whole: { type: "boolean" }, json: { type: "boolean" } });
  const all: Digests[] = [];
  for (const path of expectPositionals(positionals, "FILE...")) {
    const digests = await digestsOf(path);
    all.push(digests);
    if (values.json) continue;
    if (!values.whole) print(...digests.tensors.map(({ name, sha256 }) => `${sha256}  ${escapeText(name)}`));
    print(`${digests.sha256}  ${escapeText(path)}${values.whole ? "" : " (whole)"}`);
  }
  if (values.json) print(exactJson({ files: all }, 2));
  return 0;
}

export const command: Command = { help: HELP, run };

async function digestsOf(path: string): Promise<Digests> {
  const file = openSync(path);
  try {
    const tensors = await tensorDigests(path, Array.from(file.tensors.values()));
    const keys = metadataLines(file);
    const infos = tensors.map(({ tensor: { name, type, shape }, sha256 }) =>
      JSON.stringify(["tensor", name, type, shape, sha256]),
    );
    return {
      ...{ path, sha256: digestOfLines([...keys, ...infos.sort()]), metadata: digestOfLines(keys) },
      tensors: tensors.map(({ tensor: { name }, sha256 }) => ({ name, sha256 })),
    };
  } finally {
    file.close();
  }
}

/** Every tensor with the digest of its data, in file order. */
async function tensorDigests(
  path: string,
  tensors: readonly GgufTensor[],
): Promise<{ tensor: GgufTensor; sha256: string }[]> {
  // The largest first, so that no thread is left with one when the others are done.
  const queue = tensors.map(({ name, byteLength }) => ({ name, byteLength: byteLength || 0 }));
  queue.sort((a, b) => b.byteLength - a.byteLength);
  const total = queue.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const digests = await withProgress(path, total, (progress) =>
    spread<{ name: string; byteLength: number }, string>(
      "hash",
      path,
      queue,
      ({ byteLength }) => byteLength,
      ({ byteLength }) => progress.advance(byteLength),
    ),
  );
  const byName = new Map(queue.map(({ name }, i) => [name, digests[i] as string]));
  return tensors.map((tensor) => ({ tensor, sha256: byName.get(tensor.name) as string }));
}

/** A line for every key that is not about layout, sorted. */
function metadataLines({ metadata }: GgufFile): string[] {
  return Array.from(metadata.keys())
    .filter((key) => !LAYOUT_KEYS.has(key))
    .map((key) => `["metadata",${JSON.stringify(key)},${metadataValueJson(metadata, key)}]`)
    .sort();
}

function digestOfLines(lines: readonly string[]): string {
  const hash = createHash("sha256");
  for (const line of lines) hash.update(`${line}\n`);
  return hash.digest("hex");
}

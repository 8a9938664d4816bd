/** `gguf-native hash`: what a model consists of, in digests that do not depend on how its file is laid out. */
import { createHash } from "node:crypto";
import { type GgufFile, type GgufTensor, openSync } from "../../index";
import { expectPositionals, parse } from "../args";
import { LAYOUT_KEYS } from "../layout-keys";
import type { Command } from "../main";
import { SPLIT_OPTIONS } from "../model";
import { metadataValueJson } from "../output/json";
import { print, printJson, withProgress } from "../output/terminal";
import { counted, escapeText } from "../output/text";
import type { Source } from "../work/pieces";
import { spread } from "../work/spread";

const HELP = `Usage: gguf-native hash FILE... [--whole] [--json] [--no-splits]

The SHA-256 of every tensor's data, as stored, and of the whole: the names,
types, shapes and data of all tensors, and all metadata. The whole does not
change with what is only layout: alignment and padding, the order of keys and of
tensors, the version of the format, how a model is split into files. The data of
a tensor of an unknown type cannot be hashed: the whole is without it, and says
so.

  --whole       only the whole: one line for each file
  --json        as JSON, the digest of the metadata alone as well
  --no-splits   one file of a split model alone

Examples:
  gguf-native hash model.gguf
  gguf-native hash --whole *.gguf
`;

interface Digests {
  path: string;
  /** Of the whole. */
  sha256: string;
  metadata: string;
  /** null where the data could not be hashed. */
  tensors: { name: string; sha256: string | null }[];
  /** The names of those: their type is not known, and so not how long their data is. */
  notHashed: string[];
}

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, {
    whole: { type: "boolean" },
    json: { type: "boolean" },
    ...SPLIT_OPTIONS,
  });
  const all: Digests[] = [];
  for (const path of expectPositionals(positionals, "FILE...")) {
    const digests = await digestsOf({ path, splits: !values["no-splits"] });
    all.push(digests);
    if (values.json) continue;
    if (!values.whole) print(digests.tensors.map(tensorLine));
    print([`${digests.sha256}  ${escapeText(path)}${remark(digests, !!values.whole)}`]);
  }
  if (values.json) printJson({ files: all });
  return 0;
}

export const command: Command = { help: HELP, run };

function tensorLine({ name, sha256 }: Digests["tensors"][number]): string {
  return `${sha256 ?? "not hashed".padEnd(64)}  ${escapeText(name)}`;
}

/** What is said of the digest of a whole: that it is one, and what it leaves out. */
function remark({ notHashed }: Digests, wholeOnly: boolean): string {
  const remarks = wholeOnly ? [] : ["whole"];
  if (notHashed.length > 0) remarks.push(`without the data of ${counted(notHashed.length, "tensor")}`);
  return remarks.length > 0 ? ` (${remarks.join(", ")})` : "";
}

async function digestsOf(source: Source): Promise<Digests> {
  const { path, splits } = source;
  const file = openSync(path, { splits });
  try {
    const tensors = await tensorDigests(source, Array.from(file.tensors.values()));
    const keys = metadataLines(file);
    const infos = tensors.map(({ tensor: { name, type, shape }, sha256 }) =>
      JSON.stringify(["tensor", name, type, shape, sha256]),
    );
    return {
      ...{ path, sha256: digestOfLines([...keys, ...infos.sort()]), metadata: digestOfLines(keys) },
      tensors: tensors.map(({ tensor: { name }, sha256 }) => ({ name, sha256 })),
      notHashed: tensors.filter(({ sha256 }) => sha256 === null).map(({ tensor: { name } }) => name),
    };
  } finally {
    file.close();
  }
}

/** Every tensor with the digest of its data, in file order; null where it is not known how long that is. */
async function tensorDigests(
  source: Source,
  tensors: readonly GgufTensor[],
): Promise<{ tensor: GgufTensor; sha256: string | null }[]> {
  // The largest first, so that no thread is left with one when the others are done.
  const queue = tensors
    .filter(({ byteLength }) => !Number.isNaN(byteLength))
    .map(({ name, byteLength }) => ({ name, byteLength }));
  queue.sort((a, b) => b.byteLength - a.byteLength);
  const total = queue.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const digests = await withProgress(source.path, total, (progress) =>
    spread<{ name: string; byteLength: number }, string>(
      "hash",
      source,
      queue,
      ({ byteLength }) => byteLength,
      ({ byteLength }) => progress.advance(byteLength),
    ),
  );
  const byName = new Map(queue.map(({ name }, i) => [name, digests[i] as string]));
  return tensors.map((tensor) => ({ tensor, sha256: byName.get(tensor.name) ?? null }));
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

/** `gguf-native hash`: digests of a model that do not depend on how its file is laid out. */
import { createHash } from "node:crypto";
import { canonicalBytes, type ValuePlace } from "../../file/value-parts";
import {
  MODEL_HELP,
  MODEL_OPTIONS,
  modelOptions,
  type OpenedModel,
  type OpenModelOptions,
  openModel,
} from "../arguments/open-model";
import { expectPositionals, parse } from "../arguments/parse";
import type { Command } from "../command";
import { LAYOUT_KEYS } from "../layout-keys";
import type { Terminal } from "../output/terminal";
import { counted, escapeText } from "../output/text";
import { differentBytes } from "../output/value-json";
import { runTasks } from "../work/run-tasks";

const HELP = `Usage: gguf-native hash FILE|URL... [--whole] [options]

The SHA-256 of every tensor's data, as stored, and of the whole model: the
names, types, shapes and data of all tensors, and all metadata. The digest of
the whole does not depend on layout: alignment and padding, the order of keys
and tensors, the version of the format, or how a model is split into files. The
data of a tensor of an unknown type cannot be hashed; the last line says so.

  --whole             only the whole: one line for each file
  --json              as JSON, with the digest of the metadata alone
${MODEL_HELP}
Examples:
  gguf-native hash model.gguf
  gguf-native hash --whole *.gguf
  gguf-native hash --whole https://example.com/model.gguf
`;

const OPTIONS = {
  whole: { type: "boolean" },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

interface Digests {
  path: string;
  /** Of the whole. */
  sha256: string;
  metadata: string;
  /** `sha256` is null where the data could not be hashed. */
  tensors: { name: string; nameBytes?: string; sha256: string | null }[];
  /** The names of those tensors: the size of their type is not known. */
  notHashed: string[];
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const paths = expectPositionals(positionals, "FILE|URL...");
  const options = modelOptions(values, paths);
  const all: Digests[] = [];
  for (const path of paths) {
    const digests = await digestsOf(path, options, terminal);
    all.push(digests);
    if (values.json) continue;
    if (!values.whole) terminal.print(digests.tensors.map(tensorLine));
    terminal.print([`${digests.sha256}  ${escapeText(digests.path)}${remark(digests, !!values.whole)}`]);
  }
  if (values.json) terminal.printJson({ files: all });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

function tensorLine({ name, sha256 }: Digests["tensors"][number]): string {
  return `${sha256 ?? "not hashed".padEnd(64)}  ${escapeText(name)}`;
}

/** What follows the digest of a whole: that it is one, and what it leaves out. */
function remark({ notHashed }: Digests, wholeOnly: boolean): string {
  const remarks = wholeOnly ? [] : ["whole"];
  if (notHashed.length > 0) remarks.push(`without the data of ${counted(notHashed.length, "tensor")}`);
  return remarks.length > 0 ? ` (${remarks.join(", ")})` : "";
}

async function digestsOf(path: string, options: OpenModelOptions, terminal: Terminal): Promise<Digests> {
  const model = await openModel(path, options);
  const { file } = model;
  try {
    const digests = await tensorDigests(model, terminal);
    const tensors = Array.from(file.tensors.values(), (tensor) => {
      return { tensor, sha256: digests.get(tensor.name) ?? null };
    });
    const keys = metadataLines(file);
    const infos = tensors.map(({ tensor, sha256 }) => {
      const { type, shape } = tensor;
      return `tensor ${hex(tensor.nameBytes())} ${type} [${shape}] ${sha256 ?? "-"}`;
    });
    return {
      path: model.path,
      sha256: digestOfLines([...keys, ...infos.sort()]),
      metadata: digestOfLines(keys),
      tensors: tensors.map(({ tensor, sha256 }) => {
        const { name } = tensor;
        return { name, ...differentBytes("nameBytes", name, tensor.nameBytes()), sha256 };
      }),
      notHashed: tensors.filter(({ sha256 }) => sha256 === null).map(({ tensor: { name } }) => name),
    };
  } finally {
    file.close();
  }
}

/** The digests of the data of all tensors of known types, by name. */
async function tensorDigests(model: OpenedModel, terminal: Terminal): Promise<Map<string, string>> {
  const tasks = Array.from(model.file.tensors.values())
    .filter(({ byteLength }) => !Number.isNaN(byteLength))
    .map(({ name, elementCount, byteLength }) => {
      return { name, names: [name], start: 0, end: elementCount, cost: byteLength };
    })
    // The largest first, so that no thread is left with a large one when the others are done.
    .sort((a, b) => b.cost - a.cost);
  const digests = await runTasks(terminal, "digest", undefined, [model], tasks);
  return new Map(tasks.map(({ name }, i) => [name, digests[i] as string]));
}

/** A line for every metadata key that is not about layout, sorted. */
function metadataLines({ metadata }: OpenedModel["file"]): string[] {
  return Array.from(metadata.keys())
    .filter((key) => !LAYOUT_KEYS.has(key))
    .map((key) => {
      const name = hex(metadata.keyBytes(key) as Uint8Array);
      return `metadata ${name} ${sha256(canonicalBytes(metadata.place(key) as ValuePlace))}`;
    })
    .sort();
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function digestOfLines(lines: readonly string[]): string {
  return sha256(lines.map((line) => `${line}\n`));
}

function sha256(pieces: Iterable<string | Uint8Array>): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

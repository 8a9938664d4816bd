/** `gguf-native hash`: digests of a model that do not depend on how its file is laid out. */
import { createHash } from "node:crypto";
import { canonicalBytes, type ValuePlace } from "../../file/value-parts";
import type { GgufModelTensor } from "../../index";
import {
  MODEL_HELP,
  MODEL_OPTIONS,
  modelOptions,
  type OpenedModel,
  type OpenModelOptions,
  openModel,
  shownPath,
} from "../arguments/open-model";
import { expectPositionals, parse, UsageError } from "../arguments/parse";
import { textOf } from "../arguments/text-files";
import type { Command } from "../command";
import { LAYOUT_KEYS } from "../layout-keys";
import {
  differingTensors,
  digestLines,
  type ExpectedDigests,
  type ModelDigests,
  parseDigests,
} from "../model/digest-list";
import type { Progress } from "../output/progress";
import type { Terminal } from "../output/terminal";
import { counted } from "../output/text";
import { differentBytes } from "../output/value-json";
import { digestsOf } from "../work/digests";

const HELP = `Usage: gguf-native hash FILE|URL... [--whole] [options]
       gguf-native hash --check LIST... [options]

The SHA-256 of every tensor's data, as stored, and of the whole model: the
names, types, shapes and data of all tensors, and all metadata. The digest of
the whole does not depend on layout: alignment and padding, the order of keys
and tensors, the version of the format, or how a model is split into files. The
data of a tensor of an unknown type cannot be hashed; the last line says so.

  --whole             only the whole: one line for each file
  --check             reads lists that 'hash' has printed, and compares them
                      with the models that they name; - is standard input. The
                      exit code is 1 where a digest differs.
  --json              as JSON, with the digest of the metadata alone
${MODEL_HELP}
Examples:
  gguf-native hash model.gguf
  gguf-native hash --whole *.gguf >SHA256SUMS
  gguf-native hash --check SHA256SUMS
  gguf-native hash --whole https://example.com/model.gguf
`;

const OPTIONS = {
  whole: { type: "boolean" },
  check: { type: "boolean" },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

interface Digests extends ModelDigests {
  metadata: string;
  tensors: { name: string; nameBytes?: string; sha256: string | null }[];
}

type Values = ReturnType<typeof parse<typeof OPTIONS>>["values"];

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  if (values.check) return check(positionals, values, terminal);
  const paths = expectPositionals(positionals, "FILE|URL...");
  const options = modelOptions(values, paths);
  const all: Digests[] = [];
  await forEachModel(paths, options, terminal, async (hash) => {
    const digests = await hash();
    all.push(digests);
    if (!values.json) terminal.print(digestLines(digests, !!values.whole));
  });
  if (values.json) terminal.printJson({ files: all });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** What came out for a model of a list. */
interface Verdict {
  path: string;
  ok: boolean;
  /** Why it could not be hashed. */
  error?: string;
  /** The tensors that differ, where the list has them. */
  tensors?: string[];
}

/** Compares models with what lists say of them. */
async function check(lists: readonly string[], values: Values, terminal: Terminal): Promise<number> {
  const names = expectPositionals(lists, "LIST...");
  if (values.whole) throw new UsageError("either --check or --whole");
  const expected = names.flatMap((list) => {
    const found = readList(list);
    if (found.length === 0) throw new Error(`${list}: no digests are in this list`);
    return found;
  });
  const paths = expected.map(({ path }) => path);
  const verdicts: Verdict[] = [];
  await forEachModel(paths, modelOptions(values, paths), terminal, async (hash, index) => {
    const verdict = await verdictOn(expected[index] as ExpectedDigests, hash);
    verdicts.push(verdict);
    if (verdict.error !== undefined) terminal.complain(verdict.error);
    if (!values.json) terminal.print(verdictLines(verdict, terminal));
  });
  const ok = verdicts.every((verdict) => verdict.ok);
  if (values.json) terminal.printJson({ ok, files: verdicts });
  return ok ? 0 : 1;
}

function readList(list: string): ExpectedDigests[] {
  const text = textOf("--check", list);
  try {
    return parseDigests(text);
  } catch (error) {
    throw new Error(`${list}: ${(error as Error).message}`);
  }
}

async function verdictOn(
  { path, whole, tensors }: ExpectedDigests,
  hash: () => Promise<Digests>,
): Promise<Verdict> {
  try {
    const digests = await hash();
    const ok = digests.sha256 === whole;
    if (tensors === undefined) return { path, ok };
    const found = digestLines(digests, false).slice(0, -1);
    const differing = differingTensors(tensors, found);
    return { path, ok: ok && differing.length === 0, tensors: differing };
  } catch (error) {
    return { path, ok: false, error: (error as Error).message };
  }
}

function verdictLines({ path, ok, error, tensors }: Verdict, terminal: Terminal): string[] {
  if (ok) return [`${path}: ${terminal.good("OK")}`];
  if (error !== undefined) return [`${path}: ${terminal.bad("FAILED")} to open or read`];
  if (tensors === undefined) return [`${path}: ${terminal.bad("FAILED")}`];
  const where = tensors.length > 0 ? counted(tensors.length, "tensor") : "metadata, types or shapes";
  return [`${path}: ${terminal.bad("FAILED")} (${where})`, ...tensors.map((name) => `  ${name}`)];
}

/**
 * Calls `each` for models in their order, with what hashes the model, or throws why it cannot be opened or read. All of
 * them are opened first: only then is it known how much there is to do.
 */
async function forEachModel(
  paths: readonly string[],
  options: OpenModelOptions,
  terminal: Terminal,
  each: (hash: () => Promise<Digests>, index: number) => Promise<void>,
): Promise<void> {
  const opened: { model?: OpenedModel; error?: unknown }[] = [];
  try {
    for (const path of paths) {
      opened.push(
        await openModel(path, options).then(
          (model) => ({ model }),
          (error: unknown) => ({ error }),
        ),
      );
    }
    const bytes = opened.map(({ model }) => (model === undefined ? 0 : totalBytes(hashedTensors(model))));
    const total = bytes.reduce((sum, size) => sum + size, 0);
    const label = paths.length === 1 ? shownPath(paths[0] as string) : counted(paths.length, "file");
    await terminal.withProgress(label, total, async (progress) => {
      let end = 0;
      for (const [i, { model, error }] of opened.entries()) {
        const hash = async (): Promise<Digests> => {
          if (model === undefined) throw error;
          try {
            return await modelDigests(model, progress);
          } finally {
            progress.end();
          }
        };
        await each(hash, i);
        model?.file.close();
        // What could not be read will not be read later either.
        end += bytes[i] as number;
        progress.advanceTo(end);
      }
    });
  } finally {
    for (const { model } of opened) model?.file.close();
  }
}

async function modelDigests(model: OpenedModel, progress: Progress): Promise<Digests> {
  const { file } = model;
  const digests = await tensorDigests(model, progress);
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
}

/** The tensors of known types. */
function hashedTensors({ file }: OpenedModel): GgufModelTensor[] {
  return Array.from(file.tensors.values()).filter(({ byteLength }) => !Number.isNaN(byteLength));
}

function totalBytes(tensors: readonly GgufModelTensor[]): number {
  return tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** The digests of the data of all tensors of known types, by name. */
async function tensorDigests(model: OpenedModel, progress: Progress): Promise<Map<string, string>> {
  // The largest first, so that no thread is left with a large one when the others are done.
  const tensors = hashedTensors(model).sort((a, b) => b.byteLength - a.byteLength);
  const digests = await digestsOf(model, tensors, progress);
  return new Map(tensors.map(({ name }, i) => [name, digests[i] as string]));
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

/** `gguf-native hash`: digests of a model that do not depend on how its file is laid out. */

import { createHash } from "node:crypto";
import { LAYOUT_KEYS } from "../../describe/layout-keys";
import { counted } from "../../describe/text";
import { valueAt } from "../../file/metadata";
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
import {
  differingTensors,
  digestLines,
  type ExpectedDigests,
  type ModelDigests,
  parseDigests,
  shownLines,
} from "../formats/digest-list";
import { exactJson } from "../output/json";
import { again, type Listed, listed } from "../output/listed";
import type { Progress } from "../output/progress";
import type { Terminal } from "../output/terminal";
import { differentBytes } from "../output/value-json";
import { keyNames, tensorNames } from "../work/byte-names";
import { digestsOf } from "../work/digests";

const HELP = `Usage: gguf-native hash FILE|URL... [--whole] [options]
       gguf-native hash --check LIST... [options]

The SHA-256 of every tensor's data, as stored, and of the whole model: the
names, types, shapes and data of all tensors, and all metadata. The digest of
the whole does not depend on layout: alignment and padding, the order of keys
and tensors, the version of the format, or how a model is split into files. The
data of a tensor of an unknown type cannot be hashed; the last line says so.
On a narrow terminal each digest stands under its name.

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
  tensors: Listed<{ tensor: GgufModelTensor; sha256: string | null }>;
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
    const width = terminal.isTerminal ? terminal.width : Number.POSITIVE_INFINITY;
    if (!values.json) await terminal.printLines(shownLines(digests, !!values.whole, width));
    // All at once, when it is known that all can be read.
    if (values.json && all.length === paths.length) await terminal.printJsonPieces(json(all));
  });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

function* json(files: readonly Digests[]): Generator<string, void, undefined> {
  yield '{\n  "files": [';
  for (const [i, { path, sha256, metadata, tensors, notHashed }] of files.entries()) {
    const head = exactJson({ path, sha256, metadata }, 2).slice(2, -2);
    yield `${i === 0 ? "" : ","}\n    {\n${head},\n"tensors": [`;
    let separator = "";
    for (const { tensor, sha256 } of tensors) {
      const { name } = tensor;
      const bytes = differentBytes("nameBytes", name, tensor.nameBytes());
      yield `${separator}\n      ${exactJson({ name, ...bytes, sha256 })}`;
      separator = ",";
    }
    yield '],\n"notHashed": [';
    separator = "";
    for (const name of notHashed) {
      yield `${separator}${JSON.stringify(name)}`;
      separator = ", ";
    }
    yield "]\n    }";
  }
  yield "\n  ]\n}\n";
}

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

async function verdictOn({ path, whole, tensors }: ExpectedDigests, hash: () => Promise<Digests>): Promise<Verdict> {
  try {
    const digests = await hash();
    const ok = digests.sha256 === whole;
    if (tensors === undefined) return { path, ok };
    const found = [...digestLines(digests, false)].slice(0, -1);
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
    const bytes = opened.map(({ model }) => (model === undefined ? 0 : totalBytes(model)));
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
  const digestAt = (index: number): string | null => {
    const digest = digests.subarray(DIGEST_BYTES * index, DIGEST_BYTES * (index + 1));
    return digest.some((byte) => byte !== 0) ? digest.toString("hex") : null;
  };
  const keys = (): Iterable<string> => metadataLines(file);
  const all = (): Iterable<[number, GgufModelTensor]> => numbered(file.tensors.values());
  return {
    path: model.path,
    sha256: digestOfLines(keys(), tensorLines(file, digestAt)),
    metadata: digestOfLines(keys()),
    tensors: listed(function* () {
      for (const [index, tensor] of all()) yield { tensor, sha256: digestAt(index) };
    }, file.tensors.size),
    notHashed: listed(function* () {
      for (const tensor of file.tensors.values()) if (!isHashed(tensor)) yield tensor.name;
    }),
  };
}

const DIGEST_BYTES = 32;

/** Whether the type is known. */
function isHashed({ byteLength }: GgufModelTensor): boolean {
  return !Number.isNaN(byteLength);
}

function totalBytes({ file }: OpenedModel): number {
  let total = 0;
  for (const tensor of file.tensors.values()) if (isHashed(tensor)) total += tensor.byteLength;
  return total;
}

/** The digests of the data of all tensors, in file order; zeros for those of unknown types. */
async function tensorDigests(model: OpenedModel, progress: Progress): Promise<Buffer> {
  const { tensors } = model.file;
  const digests = Buffer.alloc(DIGEST_BYTES * tensors.size);
  const hashed = again(function* () {
    for (const each of numbered(tensors.values())) if (isHashed(each[1])) yield each;
  });
  await digestsOf(model, hashed, progress, (index, digest) => digests.set(digest, DIGEST_BYTES * index));
  return digests;
}

function* numbered<T>(items: Iterable<T>): Generator<[number, T], void, undefined> {
  let index = 0;
  for (const item of items) yield [index++, item];
}

/** A line for every metadata key that is not about layout, in the order of their bytes. */
function* metadataLines(file: OpenedModel["file"]): Generator<string, void, undefined> {
  const { metadata } = file;
  const names = keyNames(file);
  const sorted: string[] = [];
  for (const key of metadata.keys()) if (!LAYOUT_KEYS.has(key)) sorted.push(names.bytesOf(key));
  for (const bytes of sorted.sort()) {
    const place = valueAt(metadata, names.find(bytes) as string) as ValuePlace;
    yield `metadata ${hex(bytes)} ${sha256(canonicalBytes(place))}`;
  }
}

/** A line for every tensor, in the order of the bytes of their names. */
function* tensorLines(
  file: OpenedModel["file"],
  digestAt: (index: number) => string | null,
): Generator<string, void, undefined> {
  const names = tensorNames(file);
  const bytes = Array.from(file.tensors.keys(), (name) => names.bytesOf(name));
  const order = new Uint32Array(bytes.length).map((_, i) => i);
  order.sort((a, b) => ((bytes[a] as string) < (bytes[b] as string) ? -1 : 1));
  for (const index of order) {
    const name = bytes[index] as string;
    const { type, shape } = file.tensor(names.find(name) as string);
    yield `tensor ${hex(name)} ${type} [${shape}] ${digestAt(index) ?? "-"}`;
  }
}

function hex(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("hex");
}

function digestOfLines(...lists: Iterable<string>[]): string {
  return sha256(
    again(function* () {
      for (const lines of lists) for (const line of lines) yield `${line}\n`;
    }),
  );
}

function sha256(pieces: Iterable<string | Uint8Array>): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

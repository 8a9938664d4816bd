/** `gguf-native dequantize`: tensors as numbers: one summarised, or any number of them written to files. */
import { statSync } from "node:fs";
import { endianness } from "node:os";
import { extname, join } from "node:path";
import { dtypeBytes } from "../../decode/request";
import { statsRows } from "../../describe/stats-text";
import { counted, escapeText, fileNameOf, float32Text, grouped, humanBytes, shapeText } from "../../describe/text";
import { type DType, type GgmlType, type GgufModelTensor, ggmlTypes, type TensorStats } from "../../index";
import type { Origin } from "../../writer/replaced-files";
import type { Output } from "../../writer/write-outputs";
import { MODEL_HELP, MODEL_OPTIONS, type OpenedModel, withPartialModel } from "../arguments/open-model";
import { expectPositionals, oneOf, parse, UsageError } from "../arguments/parse";
import { canDequantize, selectTensors } from "../arguments/select-tensors";
import type { Command } from "../command";
import { npyHeader } from "../formats/npy";
import { safetensorsHeader } from "../formats/safetensors";
import { table } from "../output/table";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, writeFiles } from "../output/write-files";
import { decodedAhead } from "../work/decoded-ahead";
import { tensorStats } from "../work/tensor-stats";

const HELP = `Usage: gguf-native dequantize FILE|URL TENSOR... [-o OUT] [options]
       gguf-native dequantize FILE|URL --all -o OUT [options]

Turns tensors into numbers. TENSOR is a name or a glob (* ? [a-z]). Without -o,
shows a summary of one tensor and its first values. From a URL only the header
and these tensors are fetched.

  -o, --output OUT    where to write: a file that ends in .npy (NumPy),
                      .safetensors or .bin (the values alone, little-endian); or
                      a folder for a file per tensor: one that exists, or OUT/.
                      What is not a file, such as a pipe or /dev/stdout, gets
                      the values as they are decoded.
  --all               every tensor
  --exclude GLOB      but not these; more than once for more
  --dtype TYPE        f32 (default), f16 or bf16; NumPy has no bf16
  --format FORMAT     npy, safetensors or bin, whatever the name of OUT; the
                      default in folders is npy
${FORCE_HELP}${MODEL_HELP}
Rows stay rows: what 'inspect' shows as 4096 x 32 has the shape (32, 4096) in
.npy and .safetensors. Memory use does not depend on the sizes of tensors. An
existing file is replaced, with --force, once the new one is complete. In a
folder, what is no plain character of a file name on every system becomes %XX.

Examples:
  gguf-native dequantize model.gguf output_norm.weight
  gguf-native dequantize model.gguf token_embd.weight -o embeddings.npy
  gguf-native dequantize model.gguf 'blk.0.*' -o layer0.safetensors --dtype bf16
  gguf-native dequantize model.gguf --all --exclude '*norm*' -o weights/
`;

const DTYPES = ["f32", "f16", "bf16"] as const;
const FORMATS = ["npy", "safetensors", "bin"] as const;
type Format = (typeof FORMATS)[number];

const OPTIONS = {
  output: { type: "string", short: "o" },
  dtype: { type: "string", choices: DTYPES },
  format: { type: "string", choices: FORMATS },
  all: { type: "boolean" },
  exclude: { type: "string", multiple: true },
  ...FORCE_OPTION,
  ...MODEL_OPTIONS,
} as const;

/** How many values a summary shows. */
const FIRST = 8;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, ...patterns] = expectPositionals(positionals, "FILE|URL", values.all ? "[TENSOR...]" : "TENSOR...");
  const { output, exclude } = values;
  const dtype = oneOf("--dtype", values.dtype, DTYPES) ?? "f32";
  const target = output === undefined ? undefined : checkOutput(output, values.format, dtype);
  if (output === undefined && values.dtype !== undefined) throw new UsageError("--dtype needs -o");
  if (values.all && patterns.length > 0) throw new UsageError("either --all or the names of tensors");

  await withPartialModel(path, values, async (model, cutOff) => {
    const tensors = selectTensors(model.file, model.path, values.all ? undefined : patterns, exclude);
    if (target !== undefined) {
      await checkReadable(tensors, cutOff !== undefined);
      const origin = { model: model.file.paths, isGguf: false };
      await writeAll(target, dtype, tensors, origin, values.force, terminal);
    } else if (tensors.length === 1) {
      await summarise(model, tensors[0] as GgufModelTensor, terminal);
    } else {
      throw new UsageError(`${tensors.length} tensors are more than a summary shows: add -o`);
    }
  });
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

interface Target {
  output: string;
  format: Format;
  isFolder: boolean;
}

function checkOutput(output: string, wanted: string | undefined, dtype: DType): Target {
  const isFolder = /[/\\]$/.test(output) || !!statSync(output, { throwIfNoEntry: false })?.isDirectory();
  const extension = extname(output).slice(1).toLowerCase();
  const known = FORMATS.find((format) => format === extension);
  const format = oneOf("--format", wanted, FORMATS) ?? (isFolder ? "npy" : known);
  if (format === undefined) {
    throw new UsageError(`'${output}' must end in .npy, .safetensors, .bin or /, or --format must say what it is`);
  }
  if (format === "npy" && dtype === "bf16") {
    throw new UsageError("NumPy has no bfloat16: write .safetensors or .bin, or use --dtype f16 or f32");
  }
  return { output, format, isFolder };
}

/** The files to write. */
function planned({ output, format, isFolder }: Target, dtype: DType, tensors: readonly GgufModelTensor[]): Output[] {
  const one = (path: string, tensors: readonly GgufModelTensor[]): Output => {
    const shape = tensors[0]?.shape ?? [];
    const headers = {
      npy: () => npyHeader(dtype as Exclude<DType, "bf16">, shape),
      safetensors: () => safetensorsHeader(dtype, tensors),
      bin: () => new Uint8Array(),
    };
    const header = headers[format]();
    return {
      path,
      byteLength: header.length + dataBytes(tensors, dtype),
      chunks: contents(header, dtype, tensors),
    };
  };
  if (isFolder) {
    return tensors.map((tensor) => one(join(output, `${fileNameOf(tensor.name)}.${format}`), [tensor]));
  }
  if (tensors.length > 1 && format !== "safetensors") {
    const found = `${tensors.length} tensors do not fit in one .${format} file`;
    throw new UsageError(`${found}: write .safetensors, or into a folder (-o ${output.replace(/\.[^.]*$/, "")}/)`);
  }
  return [one(output, tensors)];
}

function elementsOf(tensors: readonly GgufModelTensor[]): number {
  return tensors.reduce((sum, { elementCount }) => sum + elementCount, 0);
}

function dataBytes(tensors: readonly GgufModelTensor[], dtype: DType): number {
  return elementsOf(tensors) * dtypeBytes(dtype);
}

/** A file piece by piece: its header and the values of its tensors, little-endian. */
async function* contents(
  header: Uint8Array,
  dtype: DType,
  tensors: readonly GgufModelTensor[],
): AsyncGenerator<Uint8Array, void, undefined> {
  yield header;
  for (const tensor of tensors) {
    for await (const values of decodedAhead(tensor, dtype)) {
      const piece = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
      if (endianness() === "BE") dtype === "f32" ? piece.swap32() : piece.swap16();
      yield piece;
    }
  }
}

async function writeAll(
  target: Target,
  dtype: DType,
  tensors: readonly GgufModelTensor[],
  origin: Origin,
  force: boolean | undefined,
  terminal: Terminal,
): Promise<void> {
  const { output, isFolder } = target;
  const outputs = planned(target, dtype, tensors);
  const areFiles = await writeFiles(terminal, output, outputs, origin, force, isFolder ? output : undefined);
  // Anything else may be standard output itself: it gets the values and nothing more.
  if (!areFiles) return;
  const what = tensors.length === 1 ? "" : `${counted(tensors.length, "tensor")}, `;
  const size = `${dtype}, ${humanBytes(dataBytes(tensors, dtype))}`;
  terminal.print([`${escapeText(output)}: ${what}${counted(elementsOf(tensors), "value")} (${size})`]);
}

/**
 * Fails for a tensor of an unknown type, and in a file that is cut off for one whose last block is missing, before
 * anything is written.
 */
async function checkReadable(tensors: readonly GgufModelTensor[], isCutOff: boolean): Promise<void> {
  for (const tensor of tensors) {
    const isKnown = canDequantize(tensor);
    if (isKnown && !isCutOff) continue;
    const blockSize = isKnown ? ggmlTypes[tensor.type as GgmlType].blockSize : 1;
    await tensor.dequantize({ start: Math.max(0, tensor.elementCount - blockSize) });
  }
}

async function summarise(model: OpenedModel, tensor: GgufModelTensor, terminal: Terminal): Promise<void> {
  const [stats] = (await tensorStats(terminal, model, [tensor])) as [TensorStats];
  // The first whole blocks that hold as many values as are shown.
  const end = Math.min(tensor.elementCount, 256);
  const values = await tensor.dequantize({ end });
  const first = Array.from(values.subarray(0, FIRST), (x) => float32Text(x));
  const more = tensor.elementCount > first.length ? ", ..." : "";
  const rows = [
    ["type", tensor.type],
    ["shape", shapeText(tensor.shape)],
    ["values", `${grouped(tensor.elementCount)} from ${humanBytes(tensor.byteLength)}`],
    ...statsRows(stats, { withStd: false }),
    ["first", first.join(", ") + more],
  ];
  terminal.print([
    terminal.heading(escapeText(tensor.name)),
    ...table([{ title: "" }, { title: "", min: 20 }], rows, terminal.width),
  ]);
}

/** `gguf-native dequantize`: tensors as numbers, one summarised or any number written to files. */
import { statSync } from "node:fs";
import { endianness } from "node:os";
import { extname, join } from "node:path";
import { dtypeBytes } from "../../decode/request";
import { type DType, type GgmlType, GgufTensor, ggmlTypes, type RemoteGgufTensor } from "../../index";
import type { Output } from "../../writer/output-file";
import { expectPositionals, oneOf, parse, UsageError } from "../args";
import { npyHeader } from "../formats/npy";
import { safetensorsHeader } from "../formats/safetensors";
import type { Command } from "../main";
import { isUrl, openModel, REMOTE_HELP, REMOTE_OPTIONS, SPLIT_OPTIONS, shownPath } from "../model";
import { writeFiles } from "../output/files";
import { heading, outputWidth, print } from "../output/terminal";
import { counted, escapeText, float32Text, grouped, humanBytes, shapeText, table } from "../output/text";
import { canDequantize, selectTensors } from "../select";
import { type DecodableTensor, decodedAhead, type Source } from "../work/pieces";
import type { Scan } from "../work/scan";
import { scanRows, scanTensors } from "../work/statistics";

const HELP = `Usage: gguf-native dequantize FILE|URL TENSOR... [-o OUT] [options]
       gguf-native dequantize FILE|URL --all -o OUT [options]

Turns tensors into numbers. TENSOR is a name or a glob (* ? [a-z]). Without -o,
shows a summary of one tensor of a file and its first values. Of a file on a
server only the tensors asked for are fetched.

  -o, --output OUT    where to: a file that ends in .npy (NumPy), .safetensors
                      or .bin (the bare values, little-endian), or for a file
                      per tensor a folder: one that is there, or OUT/; what
                      is no file, such as a pipe or /dev/stdout, gets the
                      values as they come
  --all               every tensor
  --exclude GLOB      but not these; more than once for more
  --dtype TYPE        f32 (default), f16 or bf16; NumPy has no bf16
  --format FORMAT     npy, safetensors or bin, whatever OUT is called; in
                      folders npy where nothing is said
  --no-splits         of one file of a split model alone
${REMOTE_HELP}
Rows come out as rows: what 'inspect' shows as 4096 x 32 has the shape
(32, 4096) in .npy and .safetensors. Memory use does not depend on the sizes of
tensors. An existing file is replaced once the new one is complete. In a folder,
characters of names that not every file name can have become %XX.

Examples:
  gguf-native dequantize model.gguf output_norm.weight
  gguf-native dequantize model.gguf token_embd.weight -o embeddings.npy
  gguf-native dequantize model.gguf 'blk.0.*' -o layer0.safetensors --dtype bf16
  gguf-native dequantize model.gguf --all --exclude '*norm*' -o weights/
`;

const FORMATS = ["npy", "safetensors", "bin"] as const;
type Format = (typeof FORMATS)[number];

/** How many values a summary shows. */
const FIRST = 8;

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, {
    output: { type: "string", short: "o" },
    dtype: { type: "string" },
    format: { type: "string" },
    all: { type: "boolean" },
    exclude: { type: "string", multiple: true },
    ...SPLIT_OPTIONS,
    ...REMOTE_OPTIONS,
  });
  const [path, ...patterns] = expectPositionals(
    positionals,
    "FILE|URL",
    values.all ? "[TENSOR...]" : "TENSOR...",
  );
  const { output, exclude } = values;
  const dtype = oneOf("--dtype", values.dtype, ["f32", "f16", "bf16"]) ?? "f32";
  const target = output === undefined ? undefined : checkOutput(output, values.format, dtype);
  if (output === undefined && values.dtype !== undefined) throw new UsageError("--dtype needs -o");
  if (values.all && patterns.length > 0) throw new UsageError("either --all or the names of tensors");

  if (output === undefined && isUrl(path)) throw new UsageError("tensors of a URL need -o");
  const splits = !values["no-splits"];
  const file = await openModel(path, { partial: !isUrl(path), splits, headers: values.header });
  try {
    const tensors = selectTensors<GgufTensor | RemoteGgufTensor>(
      file,
      shownPath(path),
      values.all ? undefined : patterns,
      exclude,
    );
    if (target === undefined) {
      if (tensors.length > 1)
        throw new UsageError(`${tensors.length} tensors are more than a summary shows: add -o`);
      await summarise({ path, splits }, tensors[0] as GgufTensor);
    } else {
      await writeAll(target, dtype, tensors);
    }
  } finally {
    file.close();
  }
  return 0;
}

export const command: Command = { help: HELP, run };

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
    throw new UsageError(`'${output}' must end in .npy, .safetensors, .bin or /, or --format say what it is`);
  }
  if (format === "npy" && dtype === "bf16") {
    throw new UsageError("NumPy has no bfloat16: write .safetensors or .bin, or use --dtype f16 or f32");
  }
  return { output, format, isFolder };
}

/** What to write into which file. */
function planned(
  { output, format, isFolder }: Target,
  dtype: DType,
  tensors: readonly DecodableTensor[],
): Output[] {
  const one = (path: string, tensors: readonly DecodableTensor[]): Output => {
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
  if (isFolder)
    return tensors.map((tensor) => one(join(output, `${fileName(tensor.name)}.${format}`), [tensor]));
  if (tensors.length > 1 && format !== "safetensors") {
    const found = `${tensors.length} tensors do not fit in one .${format} file`;
    throw new UsageError(
      `${found}: write .safetensors, or into a folder (-o ${output.replace(/\.[^.]*$/, "")}/)`,
    );
  }
  return [one(output, tensors)];
}

function elementsOf(tensors: readonly DecodableTensor[]): number {
  return tensors.reduce((sum, { elementCount }) => sum + elementCount, 0);
}

function dataBytes(tensors: readonly DecodableTensor[], dtype: DType): number {
  return elementsOf(tensors) * dtypeBytes(dtype);
}

/** A file piece by piece: its header and the values of its tensors, little-endian. */
async function* contents(
  header: Uint8Array,
  dtype: DType,
  tensors: readonly DecodableTensor[],
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

/** The name with what paths or some file systems do not allow written as %XX. No two names become the same. */
function fileName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: file names may not hold them
  return name.replace(/[\x00-\x1f\x7f%/\\:*?"<>|]/g, (char) => {
    return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
}

async function writeAll(target: Target, dtype: DType, tensors: readonly DecodableTensor[]): Promise<void> {
  const { output, isFolder } = target;
  const outputs = planned(target, dtype, tensors);
  for (const tensor of tensors) await checkReadable(tensor);
  const areFiles = await writeFiles(output, outputs, isFolder ? output : undefined);
  // What is no file may be this very output: it gets the values and nothing else.
  if (!areFiles) return;
  const what = tensors.length === 1 ? "" : `${counted(tensors.length, "tensor")}, `;
  const size = `${dtype}, ${humanBytes(dataBytes(tensors, dtype))}`;
  print([`${escapeText(output)}: ${what}${counted(elementsOf(tensors), "value")} (${size})`]);
}

/**
 * Fails for a tensor of an unknown type or whose data is cut off, before anything is written: tries its last block. What
 * a server has was checked when it was opened.
 */
async function checkReadable(tensor: DecodableTensor): Promise<void> {
  const { type, elementCount } = tensor;
  const known = canDequantize(tensor);
  if (known && !(tensor instanceof GgufTensor)) return;
  const blockSize = known ? ggmlTypes[type as GgmlType].blockSize : 1;
  const last = { start: Math.max(0, elementCount - blockSize) };
  // So little is decoded faster than another thread is asked to.
  if (tensor instanceof GgufTensor) tensor.dequantizeSync(last);
  else await tensor.dequantize(last);
}

async function summarise(source: Source, tensor: GgufTensor): Promise<void> {
  const scan = (await scanTensors(source, [tensor])).get(tensor.name) as Scan;
  // The first whole blocks that hold as many values as are shown.
  const end = Math.min(tensor.elementCount, 256);
  const first = Array.from(tensor.dequantizeSync({ end }).subarray(0, FIRST), (x) => float32Text(x));
  const more = tensor.elementCount > first.length ? ", ..." : "";
  const rows = [
    ["type", tensor.type],
    ["shape", shapeText(tensor.shape)],
    ["values", `${grouped(tensor.elementCount)} from ${humanBytes(tensor.byteLength)}`],
    ...scanRows(scan),
    ["first", first.join(", ") + more],
  ];
  print([
    heading(escapeText(tensor.name)),
    ...table([{ title: "" }, { title: "", min: 20 }], rows, outputWidth()),
  ]);
}

/** `gguf-native dequantize`: one tensor as numbers, summarised or written to a file. */
import { endianness } from "node:os";
import { extname } from "node:path";
import { type DType, type GgufTensor, openSync } from "../index";
import { expectPositionals, parse, UsageError } from "./args";
import { chunks } from "./chunks";
import type { Command } from "./main";
import { npyHeader } from "./npy";
import { OutputFile } from "./output-file";
import { scan } from "./stats";
import {
  counted,
  escapeText,
  float32Text,
  grouped,
  heading,
  humanBytes,
  outputWidth,
  shapeText,
  table,
} from "./text";

const HELP = `Usage: gguf-native dequantize FILE TENSOR [-o OUT] [--dtype f32|f16|bf16]

Turns a tensor into numbers. Without -o, shows a summary and the first values.

  -o, --output OUT   write the values: .npy for NumPy, .bin for the bare values,
                     little-endian. Rows come out as rows: what 'inspect' shows
                     as 4096 x 32 is an array of shape (32, 4096). An existing
                     file is replaced once the new one is complete.
  --dtype TYPE       f32 (default), f16 or bf16; NumPy has no bf16, use .bin

Examples:
  gguf-native dequantize model.gguf output_norm.weight
  gguf-native dequantize model.gguf token_embd.weight -o embeddings.npy
  gguf-native dequantize model.gguf blk.0.attn_q.weight -o q.bin --dtype bf16
`;

/** How many values a summary shows. */
const FIRST = 8;

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, {
    output: { type: "string", short: "o" },
    dtype: { type: "string" },
  });
  expectPositionals(positionals, "FILE", "TENSOR");
  const [path, name] = positionals as [string, string];
  const output = values.output as string | undefined;
  const dtype = checkDType(values.dtype as string | undefined);
  if (output === undefined && values.dtype !== undefined) throw new UsageError("--dtype needs -o");
  if (output !== undefined) checkOutput(output, dtype);

  const file = openSync(path, { partial: true });
  try {
    const tensor = file.tensor(name);
    if (output === undefined) await summarise(tensor);
    else await write(tensor, dtype, output);
  } finally {
    file.close();
  }
  return 0;
}

export const command: Command = { help: HELP, run };

function checkDType(dtype: string | undefined): DType {
  if (dtype === undefined) return "f32";
  if (dtype === "f32" || dtype === "f16" || dtype === "bf16") return dtype;
  throw new UsageError(`--dtype must be f32, f16 or bf16, not '${dtype}'`);
}

function checkOutput(output: string, dtype: DType): void {
  const extension = extname(output);
  if (extension !== ".npy" && extension !== ".bin") {
    throw new UsageError(`the output '${output}' must end in .npy or .bin`);
  }
  if (extension === ".npy" && dtype === "bf16") {
    throw new UsageError("NumPy has no bfloat16: write a .bin file, or use --dtype f16 or f32");
  }
}

async function summarise(tensor: GgufTensor): Promise<void> {
  const stats = await scan(tensor);
  // The first whole blocks that hold as many values as are shown.
  const end = Math.min(tensor.elementCount, 256);
  const first = Array.from(tensor.dequantizeSync({ end }).subarray(0, FIRST), (x) => float32Text(x));
  const more = tensor.elementCount > first.length ? ", ..." : "";
  const finite = stats.elements > stats.nan + stats.infinite;
  const rows = [
    ["type", tensor.type],
    ["shape", shapeText(tensor.shape)],
    ["values", `${grouped(stats.elements)} from ${humanBytes(tensor.byteLength)}`],
    ...(finite
      ? [
          ["min", float32Text(stats.min)],
          ["max", float32Text(stats.max)],
          ["mean", stats.mean.toPrecision(6)],
        ]
      : []),
    ["NaN", grouped(stats.nan)],
    ["infinite", grouped(stats.infinite)],
    ["first", first.join(", ") + more],
  ];
  const lines = table([{ title: "" }, { title: "", min: 20 }], rows, outputWidth());
  process.stdout.write(`${[heading(escapeText(tensor.name)), ...lines].join("\n")}\n`);
}

async function write(tensor: GgufTensor, dtype: DType, output: string): Promise<void> {
  const file = new OutputFile(output);
  let bytes = 0;
  try {
    if (dtype !== "bf16" && extname(output) === ".npy") file.write(npyHeader(dtype, tensor.shape));
    for await (const values of chunks(tensor, dtype)) {
      const piece = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
      if (endianness() === "BE") dtype === "f32" ? piece.swap32() : piece.swap16();
      file.write(piece);
      bytes += piece.length;
    }
    file.commit();
  } catch (error) {
    file.discard();
    throw error;
  }
  const what = `${counted(tensor.elementCount, "value")} (${dtype}, ${humanBytes(bytes)})`;
  process.stdout.write(`${escapeText(output)}: ${what}\n`);
}

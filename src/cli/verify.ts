/** `gguf-native verify`: structure and values of whole files. */
import { GgufError, type GgufFile, openSync } from "../index";
import { expectPositionals, parse } from "./args";
import type { Command } from "./main";
import { scan } from "./stats";
import { counted, escapeText, humanCount } from "./text";

const HELP = `Usage: gguf-native verify FILE...

Checks every rule of the format, that all tensor data is there, and that every
weight is a finite number. Exits with 1 where a file is broken or holds NaN or
infinite weights. Tensors of types that cannot be turned into numbers are
counted but not scanned.

Examples:
  gguf-native verify model.gguf
  gguf-native verify models/*.gguf && echo all good
`;

async function run(args: string[]): Promise<number> {
  const { positionals } = parse(args, {});
  expectPositionals(positionals, "FILE...");
  let bad = false;
  for (const path of positionals) {
    try {
      const file = openSync(path);
      try {
        if (!(await verify(file, path))) bad = true;
      } finally {
        file.close();
      }
    } catch (error) {
      if (!(error instanceof GgufError)) throw error;
      process.stderr.write(`gguf-native: ${escapeText(error.message)}\n`);
      bad = true;
    }
  }
  return bad ? 1 : 0;
}

export const command: Command = { help: HELP, run };

/** Scans every tensor and reports; true where there is nothing to find. */
async function verify(file: GgufFile, path: string): Promise<boolean> {
  let values = 0;
  let findings = 0;
  let unscanned = 0;
  for (const tensor of file.tensors.values()) {
    try {
      const { elements, nan, infinite } = await scan(tensor);
      values += elements;
      if (nan + infinite === 0) continue;
      findings++;
      const found = `${counted(nan, "NaN value")}, ${counted(infinite, "infinite value")}`;
      process.stderr.write(`gguf-native: ${escapeText(`${path}: tensor '${tensor.name}'`)}: ${found}\n`);
    } catch (error) {
      if (!(error instanceof GgufError) || error.code !== "ERR_GGUF_UNSUPPORTED_TYPE") throw error;
      unscanned++;
    }
  }
  const skipped = unscanned > 0 ? `, ${counted(unscanned, "tensor")} not scanned` : "";
  const checked = `${counted(file.tensors.size, "tensor")}, ${humanCount(values)} values${skipped}`;
  process.stdout.write(`${findings === 0 ? "ok " : "bad"}  ${escapeText(path)}  ${checked}\n`);
  return findings === 0;
}

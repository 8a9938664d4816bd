/** Readers, independent of the writers under test, for the formats that arrays are exported to. */

import { readFileSync } from "node:fs";
import { runSync, succeeds } from "./child";

/** A .npy file as npyjs, which is an ES module, reads it: numbers for f2 too. */
export async function readNpy(path: string) {
  const { parse } = await import("npyjs");
  return parse(new Uint8Array(readFileSync(path)).buffer);
}

export interface SafeTensor {
  dtype: string;
  shape: number[];
  bytes: Buffer;
}

/**
 * A safetensors file, read as strictly as its specification asks: a little-endian u64, so many bytes of JSON that begin
 * with `{`, at most 100 MB; offsets that cover the rest without holes or overlaps.
 */
export function readSafetensors(path: string): { metadata: unknown; tensors: Map<string, SafeTensor> } {
  const file = readFileSync(path);
  const length = Number(file.readBigUInt64LE(0));
  if (length > 100e6 || file[8] !== 0x7b) throw new Error("no safetensors header");
  const data = file.subarray(8 + length);
  const header = JSON.parse(file.toString("utf8", 8, 8 + length)) as Record<string, never>;
  const tensors = new Map<string, SafeTensor>();
  const extents: [number, number][] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const { dtype, shape, data_offsets } = entry as {
      dtype: string;
      shape: number[];
      data_offsets: [number, number];
    };
    const [begin, end] = data_offsets;
    const width = { F32: 4, F16: 2, BF16: 2 }[dtype]!;
    if (shape.reduce((a, b) => a * b, width) !== end - begin) throw new Error(`'${name}' has a wrong size`);
    tensors.set(name, { dtype, shape, bytes: data.subarray(begin, end) });
    extents.push([begin, end]);
  }
  extents.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let at = 0;
  for (const [begin, end] of extents) {
    if (begin !== at) throw new Error(`a hole or an overlap at ${at}`);
    at = end;
  }
  if (at !== data.length) throw new Error("data after the last tensor");
  return { metadata: header.__metadata__, tensors };
}

/** Why Python cannot import a module, or false: what `skip` of a test wants. */
export function noPython(module: string): string | false {
  return !succeeds("python3", ["-c", `import ${module}`]) && `no Python with ${module}`;
}

export function python(program: string, cwd: string): string {
  const { status, stdout, stderr } = runSync("python3", ["-c", program], { cwd });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}

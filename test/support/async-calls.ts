/** Every function that takes the options of asynchronous work, with enough of it for several threads. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as gguf from "gguf-native";
import { CHECKPOINTS, writeCheckpoint } from "./checkpoints";
import { writeGguf } from "./gguf-writer";
import { Random } from "./random";

type AsyncCall = (options: gguf.AsyncOptions) => Promise<unknown>;

/** @param folder for what they read and write */
export async function asyncCalls(folder: string): Promise<Record<string, AsyncCall>> {
  const [columns, rows, random] = [2 ** 11, 2 ** 9, new Random(3)];
  const numbers = Float32Array.from({ length: columns * rows }, () => random.gaussian());
  const bytes = new Uint8Array(numbers.buffer);
  const content = writeGguf({
    tensors: ["a.weight", "b.weight"].map((name) => ({ name, type: 0, shape: [columns, rows], bytes })),
  });
  const [input, output] = [join(folder, "in.gguf"), join(folder, "out.gguf")];
  writeFileSync(input, content);
  const checkpoint = writeCheckpoint(folder, CHECKPOINTS[0] as (typeof CHECKPOINTS)[number]);
  const blocks = gguf.quantizeSync("Q4_0", numbers, { threads: 1 });
  const x = numbers.slice(0, 4 * columns);
  const indexes = Array.from({ length: rows }, (_, i) => (i * 7) % rows);

  const file = gguf.openSync(input);
  const remote = await gguf.openRemote("http://localhost/a.gguf", {
    fetch: async (_, init) => {
      const range = /^bytes=(\d+)-(\d+)$/.exec(new Headers(init?.headers).get("range") ?? "");
      const [first, end] = [Number(range?.[1]), Math.min(Number(range?.[2]) + 1, content.length)];
      const headers = { "content-range": `bytes ${first}-${end - 1}/${content.length}` };
      return new Response(content.slice(first, end), { status: 206, headers });
    },
  });
  const b = file.tensor("b.weight");
  const ofTensors = Object.entries({ file, memory: gguf.parse(content), remote }).flatMap(([kind, model]) => {
    const tensor = model.tensor("a.weight");
    const calls: Record<string, AsyncCall> = {
      dequantize: (options) => tensor.dequantize(options),
      "dequantize to out": (options) => tensor.dequantize({ ...options, out: new Float32Array(numbers.length) }),
      rows: (options) => tensor.rows(indexes, options),
      matmul: (options) => tensor.matmul(x, options),
      stats: (options) => tensor.stats({ bins: 4, ...options }),
      compare: (options) => tensor.compare(b, options),
      loadAll: (options) => gguf.loadAll(model.tensors.values(), options),
    };
    return Object.entries(calls).map(([name, call]): [string, AsyncCall] => [`${kind}: ${name}`, call]);
  });
  return {
    ...Object.fromEntries(ofTensors),
    dequantize: (options) => gguf.dequantize("Q4_0", blocks, options),
    matmul: (options) => gguf.matmul("Q4_0", blocks, columns, x, options),
    quantize: (options) => gguf.quantize("Q8_0", numbers, options),
    quantizeModel: (options) => gguf.quantizeModel(input, output, { type: "Q8_0", ...options }),
    convertModel: (options) => gguf.convertModel(checkpoint, output, { type: "f16", ...options }),
  };
}

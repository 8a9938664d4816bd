/** One layer's weights in shared memory, used by all threads of a pool. `npm run example -- worker-pool --help` */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { loadAll, openSync } from "gguf-native";
import { onlyModel, runExample, UsageError, wholeNumber } from "./run";
import { multiplyRows } from "./worker-pool/mat-vec";
import { MatVecPool } from "./worker-pool/pool";

const USAGE = `Usage: worker-pool MODEL.gguf [options]

Dequantizes the matrices of one layer, and the largest matrix of the model, into
SharedArrayBuffers. Multiplies each with a vector, on several threads and on
one, and compares times and results. A product of less than a tenth of a
millisecond takes longer on several threads: messages to them take as long.

  --layer N      number of the layer (default 0)
  --threads N    number of threads (default: as many as the machine can run)
  --repeat N     how often to repeat each product (default 10)
`;

/** An array of zeros in memory that threads can share: vectors. */
function sharedZeros(length: number): Float32Array {
  return new Float32Array(new SharedArrayBuffer(4 * length));
}

/** The time of the fastest of `times` runs, in milliseconds. */
async function fastest(times: number, run: () => void | Promise<void>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < times; i++) {
    const begin = performance.now();
    await run();
    least = Math.min(least, performance.now() - begin);
  }
  return least;
}

runExample(USAGE, async (args) => {
  const { values: options, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      layer: { type: "string", default: "0" },
      threads: { type: "string", default: String(availableParallelism()) },
      repeat: { type: "string", default: "10" },
    },
  });
  const path = onlyModel(positionals);
  const layer = wholeNumber("--layer", options.layer, 0);
  const threads = wholeNumber("--threads", options.threads, 1);
  const repeat = wholeNumber("--repeat", options.repeat, 1);

  using file = openSync(path);
  const matrices = [...file.tensors.values()].filter(({ shape }) => shape.length === 2);
  const tensors = matrices.filter(({ name }) => name.startsWith(`blk.${layer}.`));
  if (tensors.length === 0) throw new UsageError(`the model has no matrices in layer ${layer}`);
  const largest = matrices.reduce((a, b) => (b.elementCount > a.elementCount ? b : a));
  if (!tensors.includes(largest)) tensors.push(largest);

  // Directly into memory that threads can share, on every core.
  const weights = await loadAll(tensors, { shared: true });
  const pool = new MatVecPool(threads);
  try {
    for (const tensor of tensors) {
      const [columns, rows] = tensor.shape as [number, number];
      const matrix = weights.get(tensor.name)!;
      const x = sharedZeros(columns);
      x.forEach((_, i) => {
        x[i] = Math.sin(i);
      });
      const y = sharedZeros(rows);
      const expected = new Float32Array(rows);

      const one = await fastest(repeat, () => multiplyRows(matrix, x, expected, 0, rows));
      const all = await fastest(repeat, () => pool.multiply(matrix, x, y));
      if (!y.every((value, row) => Object.is(value, expected[row]))) {
        throw new Error(`${tensor.name}: the result of several threads differs from the result of one thread`);
      }
      console.log(
        `${tensor.name}  ${tensor.type}  ${columns} x ${rows}: one thread ${one.toFixed(2)} ms, ` +
          `${threads} threads ${all.toFixed(2)} ms (${(one / all).toFixed(1)}x), same result`,
      );
    }
  } finally {
    await pool.close();
  }
});

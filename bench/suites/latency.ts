/** How long the calls of one client take while another keeps every thread busy: rows of an embedding beside `stats`. */
import { openSync } from "gguf-native";
import { type Context, MIB } from "../context";
import { progress } from "../table";
import { gaussianBlocks, writeTensors } from "../weights";

const ROWS = 32;
const COLUMNS = 4096;

export async function runLatency({ options, results }: Context): Promise<void> {
  const weights = options.quick ? 16 * MIB : 128 * MIB;
  const shape = [COLUMNS, weights / COLUMNS];
  const bytes = gaussianBlocks("Q4_K", weights);
  using file = openSync(writeTensors("latency.gguf", [{ name: "t", type: "Q4_K", shape, bytes }]));
  const tensor = file.tensor("t");
  const ask = async (): Promise<number[]> => {
    const times = [];
    for (let call = 0; call < (options.quick ? 300 : 3000); call++) {
      const begin = performance.now();
      const first = (call * 7919) % (weights / COLUMNS);
      await tensor.rows(Array.from({ length: ROWS }, (_, i) => (first + 31 * i) % (weights / COLUMNS)));
      times.push(1000 * (performance.now() - begin));
    }
    return times.sort((a, b) => a - b);
  };
  progress("latency");
  await ask(); // until the compiler has optimized it
  const idle = await ask();
  let isOver = false;
  const other = (async () => {
    while (!isOver) await tensor.stats();
  })();
  const busy = await ask();
  isOver = true;
  await other;
  progress("");
  const rows = [50, 99].map((percent) => {
    const [alone, beside] = [idle, busy].map((times) => times[Math.floor((times.length * percent) / 100)]!);
    return [`${percent} %`, ...[alone!, beside!, beside! / alone!].map((value) => value.toPrecision(3))];
  });
  results.table(`${ROWS} rows by one client, alone and beside stats, µs`, ["", "alone", "beside", "×"], rows);
}

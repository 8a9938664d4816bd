/** Runs the suites that the command line names. See bench/README.md. */
import { writeFileSync } from "node:fs";
import { writeCharts } from "./charts";
import { type Context, makeContext } from "./context";
import { checkFloors } from "./floors";
import { parseOptions, type Suite, USAGE } from "./options";
import { runCalls } from "./suites/calls";
import { runEmbeddings } from "./suites/embeddings";
import { runInAndOut, runKernels, runScaling } from "./suites/kernels";
import { runLatency } from "./suites/latency";
import { runLlama } from "./suites/llama";
import { runLoad } from "./suites/load";
import { runNetwork } from "./suites/network";
import { runOpen } from "./suites/open";
import { runProducts } from "./suites/products";
import { runQuantize } from "./suites/quantize";
import { runStats } from "./suites/stats";
import { runWasm } from "./suites/wasm";
import { size } from "./table";

/** What runs, in this order, if one of its suites is chosen. The first three are columns of one table. */
const RUNS: [suites: Suite[], run: (context: Context) => Promise<unknown>][] = [
  [["native-vs-ts", "peers", "machine"], runKernels],
  [["machine"], runInAndOut],
  [["calls"], runCalls],
  [["open"], runOpen],
  [["scaling"], runScaling],
  [["products"], runProducts],
  [["latency"], runLatency],
  [["network"], runNetwork],
  [["load"], runLoad],
  [["llama"], runLlama],
  [["embeddings"], runEmbeddings],
  [["stats"], runStats],
  [["quantize"], runQuantize],
  [["wasm"], runWasm],
];

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === "help") {
    console.log(USAGE);
    return;
  }
  if ("problem" in options) {
    console.error(`${options.problem}\n\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  const context = await makeContext(options);
  printMachine(context);
  if (options.check) {
    if (!(await checkFloors(context))) process.exitCode = 1;
  } else if (options.from === undefined) {
    for (const [suites, run] of RUNS) {
      if (suites.some((suite) => options.suites.has(suite))) await run(context);
    }
  }
  if (options.json !== undefined) {
    writeFileSync(options.json, `${JSON.stringify({ format: 2, unit: "seconds", ...context.results }, null, 1)}\n`);
    console.log(`wrote ${options.json}`);
  }
  if (options.svg !== undefined) writeCharts(context.results, options.quick, options.svg);
}

function printMachine({ results }: Context): void {
  const { processor, cores, memoryBytes, system, node, isa, threads } = results.machine;
  const memory = size(2 ** 30 * Math.round(memoryBytes / 2 ** 30));
  console.log(`${processor}, ${cores} processors, ${memory}; ${system}; Node ${node}`);
  console.log(`kernels: ${isa}; threads for asynchronous work: ${threads}`);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});

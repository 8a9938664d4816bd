/** Runs the suites that the command line names. See bench/README.md. */
import { writeFileSync } from "node:fs";
import { writeCharts } from "./charts";
import { type Context, makeContext } from "./context";
import { checkFloors } from "./floors";
import { KERNEL_SUITES, parseOptions, USAGE } from "./options";
import { runAccuracy } from "./suites/accuracy";
import { runCalls } from "./suites/calls";
import { runEmbeddings } from "./suites/embeddings";
import { runInAndOut } from "./suites/in-and-out";
import { printKernels, runKernels } from "./suites/kernels";
import { runLatency } from "./suites/latency";
import { runLlama } from "./suites/llama";
import { runLoad } from "./suites/load";
import { runOpen } from "./suites/open";
import { runProducts } from "./suites/products";
import { runQuantize } from "./suites/quantize";
import { runScaling } from "./suites/scaling";
import { runStats } from "./suites/stats";
import { runWasm } from "./suites/wasm";
import { size } from "./table";

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
  } else {
    await runSuites(context);
  }
  if (options.json !== undefined) {
    writeFileSync(options.json, `${JSON.stringify(context.results, null, 1)}\n`);
    console.log(`wrote ${options.json}`);
  }
  if (options.svg !== undefined) await writeCharts(context, options.svg);
}

async function runSuites(context: Context): Promise<void> {
  const { suites } = context.options;
  if (KERNEL_SUITES.some((suite) => suites.has(suite))) {
    await runKernels(context);
    printKernels(context);
  }
  if (suites.has("machine")) await runInAndOut(context);
  if (suites.has("calls")) await runCalls(context);
  if (suites.has("open")) await runOpen(context);
  if (suites.has("scaling")) await runScaling(context);
  if (suites.has("products")) await runProducts(context);
  if (suites.has("load")) await runLoad(context);
  if (suites.has("llama")) await runLlama(context);
  if (suites.has("embeddings")) await runEmbeddings(context);
  if (suites.has("latency")) await runLatency(context);
  if (suites.has("stats")) await runStats(context);
  if (suites.has("quantize")) await runQuantize(context);
  if (suites.has("wasm")) await runWasm(context);
  if (suites.has("accuracy")) await runAccuracy(context);
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

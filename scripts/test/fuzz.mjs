// Builds and runs the fuzzers (libFuzzer, AddressSanitizer, UndefinedBehaviorSanitizer):
//
//   node scripts/test/fuzz.mjs [--minutes N | --runs N] [--target parse|metadata|dequantize|products|quantize|network] [--keep] [--build-only]
//
// --minutes N   each target for so long (default 1), from the committed corpus and from what earlier runs found
// --runs N      each target on N inputs, the same ones every time: what CI does
// --keep        no run: replaces the committed corpus by the fewest inputs that cover what all known ones cover
//
// The committed corpus is test/fuzz/corpus.tar.gz, unpacked to build/fuzz/committed. Inputs that broke something are in
// build/fuzz/findings, inputs that reached new code in build/fuzz/corpus, and the counts of all runs in
// build/fuzz/totals.json.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fail, findClang, run, tryRun } from "../lib/commands.mjs";
import { root, variantFolder } from "../lib/paths.mjs";
import { committedInputs, packCorpus, unpackCorpus } from "./fuzz-corpus.mjs";

const targets = ["parse", "metadata", "dequantize", "products", "quantize", "network"];
/** Longest input, in bytes. Short inputs run fast; these leave room for everything that can go wrong. */
const longestInput = {
  parse: 768,
  metadata: 1024,
  dequantize: 512,
  products: 512,
  quantize: 512,
  network: 256,
};
/** Longest input that is committed, in bytes: all of them together stay below 200 KB. */
const longestKept = 640;

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string" },
    runs: { type: "string" },
    target: { type: "string", multiple: true, default: targets },
    keep: { type: "boolean", default: false },
    "build-only": { type: "boolean", default: false },
  },
});

/** The number of an option; undefined where it was not given. */
function count(name) {
  const number = Number(options[name]);
  if (options[name] !== undefined && !(number > 0)) fail(`--${name} must be a number above 0`);
  return options[name] === undefined ? undefined : number;
}

const runs = count("runs");
const minutes = count("minutes") ?? 1;
for (const target of options.target) {
  if (!targets.includes(target)) fail(`there is no target ${target}: ${targets.join(", ")}`);
}

/** Whether the compiler is there with libFuzzer, which is in a package of its own. */
function canFuzz(compiler) {
  const folder = mkdtempSync(join(tmpdir(), "gguf-native-fuzz-"));
  try {
    const probe = join(folder, "probe.cc");
    writeFileSync(probe, 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n');
    const args = ["-fsanitize=fuzzer,address,undefined", probe, "-o", join(folder, "probe")];
    return tryRun(compiler, args).status === 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The programs are built beside the C++ tests with sanitizers, with which they share the kernels. */
const programs = variantFolder("sanitize");
/** What runs leave behind. */
const build = join(root, "build", "fuzz");

function buildTargets() {
  const compiler = process.env.CXX ?? findClang();
  if (compiler === undefined || !canFuzz(compiler)) {
    fail("Clang with libFuzzer was not found. On Debian and Ubuntu: apt-get install clang-16 libclang-rt-16-dev");
  }
  const settings = ["-DCMAKE_BUILD_TYPE=Release", "-DGGUF_NATIVE_FUZZ=ON", "-DGGUF_NATIVE_SANITIZE=address,undefined"];
  run("cmake", ["-S", join(root, "native"), "-B", programs, ...settings], {
    env: { ...process.env, CXX: compiler },
  });
  const names = targets.map((target) => `fuzz_${target}`);
  run("cmake", ["--build", programs, "--parallel", String(availableParallelism()), "--target", ...names]);
}

/** What libFuzzer exits with when somebody interrupts it. */
const interrupted = 72;

/** Runs one target. Its executions, and whether nothing was found. */
function fuzz(target) {
  const committed = committedInputs(target);
  const findings = join(build, "findings", `${target}-`);
  mkdirSync(join(build, "findings"), { recursive: true });
  // A run of a fixed number of inputs starts from the committed corpus alone, so that it is the same everywhere.
  const grown = runs === undefined ? join(build, "corpus", target) : mkdtempSync(join(tmpdir(), "gguf-fuzz-"));
  mkdirSync(grown, { recursive: true });
  const limits = runs === undefined ? [`-max_total_time=${Math.ceil(minutes * 60)}`] : [`-runs=${runs}`, "-seed=1"];
  const { status, error, stderr } = tryRun(
    join(programs, `fuzz_${target}`),
    [
      ...[grown, ...(existsSync(committed) ? [committed] : [])],
      ...limits,
      `-max_len=${longestInput[target]}`,
      `-artifact_prefix=${findings}`,
      // An input as short as these that takes this long or this much memory is a finding too.
      ...["-timeout=60", "-rss_limit_mb=2048", "-malloc_limit_mb=64"],
      ...["-print_final_stats=1", "-print_funcs=0", "-reload=0", "-verbosity=1", "-entropic=0"],
    ],
    {
      timeout: runs === undefined ? (minutes + 10) * 60_000 : 0, // how long a number of inputs takes, nobody knows
      env: {
        ...process.env,
        // Without these AddressSanitizer spends more time on its own records than on the code under test.
        ASAN_OPTIONS: "malloc_context_size=4:quarantine_size_mb=16:detect_stack_use_after_return=0",
        UBSAN_OPTIONS: "print_stacktrace=1",
      },
    },
  );
  if (error) fail(`fuzz_${target}: ${error.message}`);
  if (runs !== undefined) rmSync(grown, { recursive: true });
  const executions = Number(/stat::number_of_executed_units: (\d+)/.exec(stderr)?.[1] ?? 0);
  const good = status === 0 || status === interrupted;
  if (!good) console.error(stderr.split("\n").slice(-80).join("\n"));
  return { executions, good };
}

/** Reduces the committed inputs of a target to the fewest and shortest that reach what all known ones reach. */
function keep(target) {
  const committed = committedInputs(target);
  const grown = join(build, "corpus", target);
  if (!existsSync(grown)) fail(`there is nothing to keep: ${grown} does not exist`);
  if (existsSync(committed)) cpSync(committed, grown, { recursive: true });
  rmSync(committed, { recursive: true, force: true });
  mkdirSync(committed, { recursive: true });
  run(join(programs, `fuzz_${target}`), ["-set_cover_merge=1", `-max_len=${longestKept}`, committed, grown]);
}

function addToTotals(target, { executions, good }) {
  const path = join(build, "totals.json");
  const totals = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  totals[target] ??= { executions: 0, findings: 0 };
  totals[target].executions += executions;
  totals[target].findings += good ? 0 : 1;
  writeFileSync(path, `${JSON.stringify(totals, null, 2)}\n`);
  return totals[target];
}

buildTargets();
if (options["build-only"]) process.exit(0);
unpackCorpus();
if (options.keep) {
  for (const target of options.target) keep(target);
  packCorpus();
  process.exit(0);
}
let good = true;
for (const target of options.target) {
  const result = fuzz(target);
  const total = addToTotals(target, result);
  good &&= result.good;
  const outcome = result.good ? "nothing found" : `FOUND SOMETHING: see ${join(build, "findings")}`;
  console.log(`${target}: ${result.executions} executions, ${outcome} (${total.executions} in all in this folder)`);
}
process.exit(good ? 0 : 1);

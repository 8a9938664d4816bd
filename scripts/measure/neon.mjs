// Estimates the speed of the NEON kernels without an ARM machine:
//
//   node scripts/measure/neon.mjs [--products] [--compiler COMMAND] [--json FILE] [TYPE ...]
//
// Each kernel is cross-compiled with the flags of the addon and run once under qemu, which records every instruction
// that it executes. llvm-mca then says how many cycles these take on a core, by LLVM's model of that core, when they
// come again and again. The bound is what the stores alone take by the same model: 16 registers for 64 weights. What no
// model has: caches, the forwarding of stores to loads, and how well branches are predicted.
//
// --products   of levels with vectors of 8 bits, on each set, instead of dequantizing
// --compiler   default: aarch64-linux-gnu-g++-12 or aarch64-linux-gnu-g++; "clang++-16 --target=aarch64-linux-gnu" works
// --json FILE  writes the figures, too
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fail, isThere, need, output, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const CORES = ["neoverse-n1", "neoverse-v1", "apple-m1"];
/** The sets for one vector and for several, with the cores that have them. */
const SETS = { neon: CORES, neon_dotprod: CORES };
const TILE_SETS = { ...SETS, neon_i8mm: ["neoverse-v1"] };
/** Enough groups for a kernel to come to the same steps again and again. */
const GROUPS = 12;
/** As kGroup in native/dequant/kernels/kernel.h. */
const groupWeights = (blockElements) => (blockElements >= 256 ? blockElements : 512);
const folder = join(root, "build", "estimate-neon");

const { values: options, positionals: chosen } = parseArgs({
  options: {
    products: { type: "boolean", default: false },
    compiler: { type: "string" },
    json: { type: "string" },
  },
  allowPositionals: true,
});
const firstOf = (...commands) => commands.find(isThere) ?? commands.at(-1);
const compiler = options.compiler ?? firstOf("aarch64-linux-gnu-g++-12", "aarch64-linux-gnu-g++");
const mca = firstOf(...[22, 21, 20, 19, 18, 17, 16].map((version) => `llvm-mca-${version}`), "llvm-mca");
const objdump = mca.replace("mca", "objdump");
need(
  [compiler.split(" ")[0], "g++-aarch64-linux-gnu"],
  ["qemu-aarch64-static", "qemu-user-static"],
  [mca, "llvm-19, or llvm-16, whose models of two of the cores are those of others"],
  [objdump, "llvm-19"],
);

const program = compile();
const symbols = readSymbols();
const instructions = readInstructions();
const bounds = CORES.map((core) => cyclesOf(core, storesOf(64)));
console.log(`${compiler}: ${firstLine(compiler)}; ${firstLine(mca)}`);
for (const [i, core] of CORES.entries()) {
  console.log(`${core}: model ${modelOf(core)}, ${bounds[i].toFixed(1)} cycles for the stores of 64 weights`);
}

const rows = options.products ? productRows() : storeRows();
if (rows.length === 0) fail(`no such type: ${chosen.join(", ")}`);
printTable();
if (options.json) writeFileSync(options.json, `${JSON.stringify({ cores: CORES, bounds, rows }, null, 1)}\n`);

function storeRows() {
  return chosenFormats().map(([type, blockElements]) => {
    const weights = groupWeights(blockElements);
    const blocks = (GROUPS * weights) / blockElements;
    const lines = steadySteps(type, symbols.get(type), ["store", type, String(blocks)], GROUPS);
    const stored = lines.reduce((sum, line) => sum + bytesStored(line), 0);
    if (stored < weights * 2 * 4) fail(`${type} stores ${stored} bytes for ${weights * 2} weights`);
    return rowOf(type, lines, weights * 2);
  });
}

/** A type with one vector on each set; then the tiles of each set, which are the same for all types. */
function productRows() {
  const found = [];
  for (const [type, blockElements] of chosenFormats()) {
    if (blockElements === 1) continue;
    for (const isa of Object.keys(SETS)) {
      const weights = groupWeights(blockElements);
      const args = ["multiply", isa, type, String((GROUPS * weights) / blockElements)];
      const lines = steadySteps(`${type}-${isa}`, symbols.get(`multiply ${type}`), args, GROUPS);
      found.push(rowOf(`${type}, ${isa}`, lines, weights * 2));
    }
  }
  for (const [run, affine] of [32, 16].flatMap((columns) => [0, 1].map((added) => [columns, added]))) {
    for (const [isa, cores] of Object.entries(TILE_SETS)) {
      const runs = 16 * GROUPS; // GROUPS for each partial sum
      const args = ["tile", isa, String(run), String(affine), String(runs)];
      const [tileRows, vectors] = output("qemu-aarch64-static", [program, ...args])
        .split(" ")
        .map(Number);
      const name = `tile-${run}-${affine}-${isa}`;
      const lines = steadySteps(name, symbols.get(`tile ${run} ${vectors}`), args, runs);
      const what = `${tileRows} x ${vectors}, runs of ${run}${affine ? " with minima" : ""}, ${isa}`;
      found.push(rowOf(what, lines, 2 * run * tileRows * vectors, cores));
    }
  }
  return found;
}

/** Cycles are NaN on the cores that lack the instructions. */
function rowOf(type, lines, weights, cores = CORES) {
  const per64 = 64 / weights;
  const cycles = CORES.map((core) => (cores.includes(core) ? cyclesOf(core, lines) * per64 : Number.NaN));
  return { type, instructions: lines.length * per64, cycles, shares: cycles.map((n, k) => bounds[k] / n) };
}

/** Compiles the kernels and the program that runs one of them. The flags are those of binding.gyp. */
function compile() {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "run-kernel");
  const sources = ["isa/neon.cc", "isa/neon_dotprod.cc", "isa/neon_i8mm.cc", "codebooks.cc", "formats.cc"];
  const flags = ["-O3", "-ffp-contract=off", "-std=c++17", "-fvisibility=hidden", "-fno-pie"];
  const [command, ...first] = compiler.split(" ");
  output(command, [
    ...[...first, ...flags, "-I", "native", "-static", "-no-pie"],
    ...["bench/native/run-kernel.cc"],
    ...[...sources.map((source) => `native/dequant/${source}`), "-o", path],
  ]);
  return path;
}

/** The first and the last address of the functions of each kernel, by the name of its block or the size of its tile. */
function readSymbols() {
  const found = new Map();
  const lines = output(objdump, ["--syms", program]).split("\n");
  for (const line of lines) {
    const [, address, size, name] =
      /^([0-9a-f]+) .*\.text\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$/.exec(line) ?? [];
    const [, stored] = /store_blocksIN\w*?\d+Block(\w+?)ELNS/.exec(name ?? "") ?? [];
    const [, multiplied] = /multiply_codesIN\w*?\d+Block(\w+?)EEEv/.exec(name ?? "") ?? [];
    const [, run, vectors] = /multiply_code_tileILi(\d+)ELi0ELi(\d+)E/.exec(name ?? "") ?? [];
    const key = stored ?? (multiplied && `multiply ${multiplied}`) ?? (run && `tile ${run} ${vectors}`);
    if (key === undefined) continue;
    const ranges = found.get(key) ?? [];
    ranges.push(`0x${address}+0x${size}`);
    found.set(key, ranges);
  }
  return found;
}

/** Every instruction of the program by its address, as text for llvm-mca. */
function readInstructions() {
  const text = output(objdump, ["-d", "--no-show-raw-insn", program]);
  const found = new Map();
  for (const [, address, code] of text.matchAll(/^\s*([0-9a-f]+):\s+(\S.*)$/gm)) {
    // Targets of branches and addresses of pages need not be right, but near.
    found.set(
      Number.parseInt(address, 16),
      code
        .replace(/\s*(<.*>|\/\/.*)$/, "")
        .replace(/^(b(?:\.\w+)?|bl|adrp|adr)(\s+(?:\w+, )?)0x[0-9a-f]+$/, "$1$20")
        .replace(/^(cbn?z|tbn?z)(\s.*, )0x[0-9a-f]+$/, "$1$20"),
    );
  }
  return found;
}

/** The types that were asked for, or all but F32, which the C library copies. */
function chosenFormats() {
  const lines = output("qemu-aarch64-static", [program]).trim().split("\n");
  const all = lines.map((line) => line.split(" ")).map(([type, elements]) => [type, Number(elements)]);
  return all.filter(([type]) => type !== "F32" && (chosen.length === 0 || chosen.includes(type)));
}

/**
 * What a kernel executes for two groups (or runs of a tile), in the middle of its work: the scales of successive groups are
 * computed to two places in turn, so that two groups are one round. `count` groups are executed.
 */
function steadySteps(name, ranges, args, count) {
  if (ranges === undefined) fail(`the kernel ${name} was not found in ${program}`);
  const log = join(folder, `${name}.log`);
  const how = ["-singlestep", "-d", "exec,nochain", "-dfilter", ranges.join(","), "-D", log];
  output("qemu-aarch64-static", [...how, program, ...args]);
  const trace = [...readFileSync(log, "latin1").matchAll(/^Trace \d+: \S+ \[[0-9a-f]+\/([0-9a-f]+)\//gm)];
  const addresses = trace.map(([, address]) => Number.parseInt(address, 16));
  const visits = new Map();
  for (const [at, address] of addresses.entries()) visits.set(address, [...(visits.get(address) ?? []), at]);
  // An instruction that is executed once for each group, perhaps not for the first or the last.
  const rounds = [...visits.values()].find((at) => at.length === count || at.length === count - 1);
  if (rounds === undefined) fail(`the loop of ${name} over groups was not found`);
  const round = (first) => addresses.slice(rounds[first], rounds[first + 2]);
  if (round(4).join() !== round(6).join()) fail(`the rounds of ${name} differ`);
  return round(4).map((address) => instructions.get(address) ?? fail(`no instruction at ${address}`));
}

/** Of vector registers; 0 for every other instruction. */
function bytesStored(line) {
  const [, pair, size] = /^st(n?p|u?r)\s+([qd])\d+/.exec(line) ?? [];
  return pair === undefined ? 0 : (size === "q" ? 16 : 8) * (pair.endsWith("p") ? 2 : 1);
}

/** A loop that only stores so many weights. */
function storesOf(weights) {
  const pairs = Array.from({ length: weights / 8 }, (_, i) => `stp q0, q1, [x0, #${32 * i}]`);
  return [...pairs, `add x0, x0, #${4 * weights}`, "cmp x0, x1", "b.ne 0"];
}

function cyclesOf(core, lines) {
  const iterations = Math.max(20, Math.ceil(20_000 / lines.length));
  const report = runMca(core, lines, "-iterations", String(iterations));
  return Number(/^Total Cycles:\s+(\d+)/m.exec(report)[1]) / iterations;
}

/** What LLVM calls its model of a core, which may be one of another core. */
function modelOf(core) {
  return /^\[0[.0]*\]\s+- (\w+?)Unit/m.exec(runMca(core, storesOf(64)))?.[1] ?? "unknown";
}

function runMca(core, lines, ...more) {
  const input = join(folder, "steps.s");
  writeFileSync(input, `${lines.join("\n")}\n`);
  const { status, stdout, stderr } = tryRun(mca, ["-mtriple=aarch64", `-mcpu=${core}`, ...more, input]);
  if (status !== 0) fail(`${mca}: ${stderr}`);
  return stdout;
}

function firstLine(command) {
  const [program_, ...first] = command.split(" ");
  return /^.*\d.*$/m.exec(output(program_, [...first, "--version"]))[0].trim();
}

function printTable() {
  const columns = (core) => (options.products ? [core] : [core, "of the bound"]);
  const titles = ["type", "instructions", ...CORES.flatMap(columns)];
  const what = options.products
    ? "For 64 weights, each with one vector: instructions and cycles.\n"
    : "For 64 weights: instructions, cycles and the bound of the stores as a share of them.\n";
  console.log(what);
  console.log(`| ${titles.join(" | ")} |\n|${titles.map(() => "---|").join("")}`);
  for (const { type, instructions: count, cycles, shares } of rows) {
    const cells = cycles.flatMap((n, i) =>
      options.products
        ? [Number.isNaN(n) ? "–" : n.toFixed(1)]
        : [n.toFixed(1), shares[i].toFixed(2).replace(/^0/, "")],
    );
    console.log(`| ${[type, count.toFixed(1), ...cells].join(" | ")} |`);
  }
}

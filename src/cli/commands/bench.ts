/** `gguf-native bench`: how fast this machine dequantizes. */
import { randomFillSync } from "node:crypto";
import { counted, escapeText, grouped, humanCount } from "../../describe/text";
import {
  allocateArray,
  cpu,
  dequantize,
  dequantizeSync,
  type GgmlType,
  type GgufTensor,
  ggmlTypes,
  openSync,
} from "../../index";
import { expectPositionals, parse } from "../arguments/parse";
import { canDequantize } from "../arguments/select-tensors";
import type { Command } from "../command";
import type { Progress } from "../output/progress";
import { table } from "../output/table";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native bench [FILE] [--json]

Measures how fast this machine dequantizes: for each type the gigabytes of
float32 per second, on one thread and on all. With FILE: its own tensors, up to
128 MiB of output for each type, and how long it takes to open. Without: random
blocks. Shows the best of several runs into the same memory.

  --json   as JSON

GGUF_NATIVE_ISA chooses the instruction set, UV_THREADPOOL_SIZE the threads.

Examples:
  gguf-native bench model.gguf
  GGUF_NATIVE_ISA=scalar gguf-native bench
`;

const OPTIONS = { json: { type: "boolean" } } as const;

/** Elements of one call: 64 MiB of output. A multiple of every block size. */
const CALL_ELEMENTS = 2 ** 24;

/** Elements of one run, at most, rounded up to whole calls: 128 MiB of output. */
const RUN_ELEMENTS = 2 ** 25;

/** A measurement repeats for at least so many milliseconds, and at least so often. */
const LEAST_MS = 100;
const LEAST_REPEATS = 3;

const TYPES = Object.keys(ggmlTypes) as GgmlType[];

/** A piece of work that can be done on one thread or on all, into an output of `elements`. */
interface Call {
  elements: number;
  sync(out: Float32Array): void;
  async(out: Float32Array): Promise<unknown>;
}

interface Subject {
  type: GgmlType;
  tensors: number | undefined;
  calls: readonly Call[];
}

interface Rate {
  type: GgmlType;
  tensors: number | undefined;
  /** Weights of one run. */
  elements: number;
  /** Bytes of float32 per second. */
  oneThread: number;
  allThreads: number;
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path] = expectPositionals(positionals, "[FILE]");
  const opening = path === undefined ? undefined : timeOpening(path);
  const file = path === undefined ? undefined : openSync(path, { partial: true });
  const subjects = file === undefined ? randomSubjects() : subjectsOf(Array.from(file.tensors.values()));
  const rates: Rate[] = [];
  const measureAll = async (progress: Progress): Promise<void> => {
    for (const subject of subjects) {
      rates.push(await measure(subject));
      progress.advance(1);
    }
  };
  await terminal.withProgress(path ?? "random blocks", subjects.length, measureAll, "steps");
  file?.close();

  const { isa, threads } = cpu();
  const report = { path, isa, threads, opening, types: rates };
  if (values.json) terminal.printJson(report);
  else {
    if (opening !== undefined) {
      terminal.print([`open      ${opening.best.toFixed(2)} ms, ${opening.first.toFixed(2)} ms the first time`]);
    }
    terminal.print([`kernels   ${isa}, ${counted(threads, "thread")}`, ""]);
    if (path !== undefined) terminal.print([terminal.heading(escapeText(path))]);
    terminal.print(rateTable(rates, threads, terminal.width));
  }
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** Milliseconds from the path to the list of tensors. */
function timeOpening(path: string): { first: number; best: number } {
  const once = (): number => {
    const begin = performance.now();
    const file = openSync(path, { partial: true });
    for (const _ of file.tensors.values());
    const end = performance.now();
    file.close();
    return end - begin;
  };
  const first = once();
  let best = first;
  for (let i = 0; i < 10; i++) best = Math.min(best, once());
  return { first, best };
}

/** The tensors of a file, by type. */
function subjectsOf(tensors: readonly GgufTensor[]): Subject[] {
  const types = new Set(tensors.filter(canDequantize).map(({ type }) => type as GgmlType));
  return Array.from(types, (type) => {
    const mine = tensors.filter((tensor) => tensor.type === type);
    const calls: Call[] = [];
    let elements = 0;
    for (const call of mine.flatMap(callsOf)) {
      if (elements < RUN_ELEMENTS) calls.push(call);
      elements += call.elements;
    }
    return { type, tensors: mine.length, calls };
  });
}

function callsOf(tensor: GgufTensor): Call[] {
  const calls: Call[] = [];
  for (let start = 0; start < tensor.elementCount; start += CALL_ELEMENTS) {
    const end = Math.min(tensor.elementCount, start + CALL_ELEMENTS);
    calls.push({
      elements: end - start,
      sync: (out) => tensor.dequantizeSync({ start, end, out }),
      async: (out) => tensor.dequantize({ start, end, out }),
    });
  }
  return calls;
}

/** Random blocks of every type. */
function randomSubjects(): Subject[] {
  const most = Math.max(...TYPES.map((type) => blockBytes(type)));
  const random = randomFillSync(new Uint8Array(2 ** 20));
  // Shared memory cannot go away, so that work on other threads reads it where it is.
  const bytes = new Uint8Array(new SharedArrayBuffer(most));
  for (let at = 0; at < most; at += random.length) bytes.set(random.subarray(0, most - at), at);
  return TYPES.map((type) => {
    const blocks = bytes.subarray(0, blockBytes(type));
    const call: Call = {
      elements: CALL_ELEMENTS,
      sync: (out) => dequantizeSync(type, blocks, { out }),
      async: (out) => dequantize(type, blocks, { out }),
    };
    return { type, tensors: undefined, calls: [call] };
  });
}

/** Bytes of as many weights as one call is for. */
function blockBytes(type: GgmlType): number {
  const { blockSize, typeSize } = ggmlTypes[type];
  return (CALL_ELEMENTS / blockSize) * typeSize;
}

async function measure({ type, tensors, calls }: Subject): Promise<Rate> {
  const elements = calls.reduce((sum, call) => sum + call.elements, 0);
  // The addon's own memory: work on other threads writes straight into it.
  const out = allocateArray(elements);
  let end = 0;
  const outputs = calls.map((call) => {
    end += call.elements;
    return out.subarray(end - call.elements, end);
  });
  const oneThread = await fastest(() => {
    calls.forEach((call, i) => {
      call.sync(outputs[i] as Float32Array);
    });
  });
  const allThreads = await fastest(async () => {
    await Promise.all(calls.map((call, i) => call.async(outputs[i] as Float32Array)));
  });
  const bytes = elements * out.BYTES_PER_ELEMENT;
  return { type, tensors, elements, oneThread: bytes / oneThread, allThreads: bytes / allThreads };
}

/** Seconds of the fastest of several runs. */
async function fastest(work: () => void | Promise<void>): Promise<number> {
  let best = Infinity;
  const end = performance.now() + LEAST_MS;
  for (let i = 0; i < LEAST_REPEATS || performance.now() < end; i++) {
    const begin = performance.now();
    await work();
    best = Math.min(best, performance.now() - begin);
  }
  return best / 1000;
}

function rateTable(rates: readonly Rate[], threads: number, width: number): string[] {
  const gigabytes = (rate: number): string => (rate / 1e9).toFixed(2);
  const rows = rates.map(({ type, tensors, elements, oneThread, allThreads }) => [
    type,
    ...(tensors === undefined ? [] : [grouped(tensors)]),
    humanCount(elements),
    gigabytes(oneThread),
    gigabytes(allThreads),
  ]);
  const titles = ["weights", "GB/s, 1 thread", `GB/s, ${counted(threads, "thread")}`];
  if (rates[0]?.tensors !== undefined) titles.unshift("tensors");
  const columns = [{ title: "type" }, ...titles.map((title) => ({ title, align: "right" as const }))];
  return [...table(columns, rows, width)];
}

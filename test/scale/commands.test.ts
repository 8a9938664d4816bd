/**
 * What commands cost with large files: memory does not grow with the values of a file. Files that are sparse hold hundreds of
 * megabytes in a few bytes on disk.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { GgufWriter } from "gguf-native";
import { ByteWriter } from "../support/byte-writer";
import { start } from "../support/child";
import { at, bin, folder, run } from "../support/cli";
import { emulated } from "../support/emulated";
import { arr, writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { sanitized } from "../support/sanitized";
import { writeSparse } from "../support/sparse-file";

const MiB = 2 ** 20;

/** The most that a command may take, Node included, which takes some 50 MiB. */
const MOST_BYTES = 300 * MiB;

/**
 * The space for new objects, in MiB, that V8 may fill before it looks which of them are still in use: later versions of
 * Node.js take several times as much, however little is kept.
 */
const NEW_SPACE = "--max-semi-space-size=16";

/** Writes a file whose only key holds an array of `count` elements, all zero. Returns a test's `skip`. */
function writeZeros(name: string, elementType: number, count: number, bytes: number): string | false {
  if (emulated) return "the emulator keeps a record of every page that is mapped";
  if (sanitized) return "sanitizers take memory of their own";
  const header = new ByteWriter().bytes(Buffer.from("GGUF")).u32(3).u64(0).u64(1);
  header.string("array").u32(9).u32(elementType).u64(count);
  return writeSparse(at(name), header.done(), count * bytes);
}

const reporter = at("report.cjs");
writeFileSync(
  reporter,
  `process.on("exit", () => require("fs").writeSync(2, "maxRSS " + process.resourceUsage().maxRSS + "\\n"));`,
);

/** Runs a command in a process of its own, and reads what it prints after `pause` milliseconds. */
async function cost(args: readonly string[], pause = 0): Promise<{ stdout: string; bytes: number }> {
  const child = start(process.execPath, [NEW_SPACE, "--require", reporter, bin, ...args], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  await delay(pause);
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    if (stdout.length < 2 ** 20) stdout += text;
  });
  assert.equal(await ended, 0, stderr);
  const kibibytes = Number(/maxRSS (\d+)/.exec(stderr)?.[1]);
  return { stdout, bytes: kibibytes * 1024 };
}

async function assertCheap(args: readonly string[], expected: RegExp, pause = 0, most = MOST_BYTES): Promise<void> {
  const { stdout, bytes } = await cost(args, pause);
  assert.match(stdout, expected);
  assert.ok(bytes < most, `${args.join(" ")}: ${Math.round(bytes / MiB)} MiB`);
}

const arrays: readonly [name: string, skip: string | false, value: RegExp][] = [
  ["numbers", writeZeros("numbers", 0, 600 * MiB, 1), /uint8\[629145600\] +\[0, 0, 0, /],
  ["strings", writeZeros("strings", 8, 2 ** 26, 8), /string\[67108864\] +\["", "", /],
  ["bools", writeZeros("bools", 7, 2 ** 26, 1), /bool\[67108864\] +\[false, false, /],
];
for (const [name, skip, value] of arrays) {
  describe(`a sparse array of ${name}`, { skip: skip || needsAddon.skip }, () => {
    test("inspect reads no more than it shows", () => assertCheap(["inspect", name], value));
    test("hash goes through it in pieces", () => assertCheap(["hash", name], /^[0-9a-f]{64} /));
    test("diff does", () => assertCheap(["diff", name, name], /^no differences\n$/));
    test("verify does not keep it in memory", () => assertCheap(["verify", name], /^ok /));
  });
}

describe("inspect --json", { skip: writeZeros("some", 0, 2 ** 25, 1) }, () => {
  const expected = /"length":33554432,"value":\[0,0,0,/;
  test("prints an array in pieces", () => assertCheap(["inspect", "--json", "some"], expected));
  test("no faster than its reader takes them", () => assertCheap(["inspect", "--json", "some"], expected, 3_000));
});

describe("400,000 tensors", { skip: (emulated || sanitized) && "takes too long there" }, () => {
  const count = 400_000;
  const w = new ByteWriter();
  w.bytes(Buffer.from("GGUF")).u32(3).u64(count).u64(0);
  for (let i = 0; i < count; i++)
    w.string(`t${i}`)
      .u32(1)
      .u64(1)
      .u32(0)
      .u64(32 * i);
  w.align(32);
  assert.equal(writeSparse(at("tensors"), w.done(), 32 * count), false);
  test("inspect keeps no rows", () => assertCheap(["inspect", "tensors"], /Tensors \(400,000\)/));
  test("hash keeps a digest of each", () =>
    assertCheap(["hash", "--whole", "tensors"], /^[0-9a-f]{64} /, 0, 400 * MiB));
  test("diff keeps nothing of what is the same", () =>
    assertCheap(["diff", "tensors", "tensors"], /^no differences\n$/, 0, 400 * MiB));
  test("verify keeps nothing of what is finite", () => assertCheap(["verify", "tensors"], /^ok /));
  test("can be drawn", () => assertStrips("tensors"));
});

async function assertStrips(name: string): Promise<void> {
  await cost(["stats", name, "--svg", "strips.svg"]);
  assert.equal(readFileSync(at("strips.svg"), "utf8").match(/<rect x=/g)?.length, 400_000);
}

test("tokens --all keeps no lines", { skip: (emulated || sanitized) && "takes too long there" }, async () => {
  const tokens = Array.from({ length: 500_000 }, (_, i) => `token${i}`);
  const metadata = [["tokenizer.ggml.tokens", arr("string", tokens)]] as const;
  writeFileSync(at("vocabulary"), writeGguf({ metadata: [...metadata] }));
  await assertCheap(["tokens", "--all", "vocabulary"], /Tokens \(500,000\)/);
});

test("any number of tensors and keys", { skip: emulated && "too slow" }, async () => {
  const writer = new GgufWriter();
  const count = 150_000;
  for (let i = 0; i < count; i++) writer.set(`k.${i}`, i).addTensor(`t.${i}`, "F32", [1], Float32Array.of(i));
  await writer.write(at("many.gguf"));
  const { stderr, lines } = await run(["inspect", "many.gguf"]);
  assert.equal(stderr, "");
  assert.ok(lines.length > 2 * count);
});

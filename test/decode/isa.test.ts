/** Every instruction set of this machine, each in a process of its own, against ggml's own results. */
import assert from "node:assert/strict";
import { cpus } from "node:os";
import { describe, test } from "node:test";
import { cpu } from "gguf-native";
import { childProgram, outcomeOfLine, runNode, runSync, succeeds } from "../support/child";
import { sameElsewhere } from "../support/emulated";
import { ALL_TYPES, readGolden } from "../support/golden";
import { needsAddon } from "../support/needs-addon";

const run = (isa: string | undefined, args: string[]) =>
  runNode(args, { env: { ...process.env, GGUF_NATIVE_ISA: isa } });

describe("the golden file", () => {
  const goldenCases = readGolden().length;
  for (const isa of cpu().available) {
    test(`${ALL_TYPES.length} types on ${isa}`, async () => {
      const { stdout, stderr, status } = await outcomeOfLine([childProgram("golden")], {
        env: { ...process.env, GGUF_NATIVE_ISA: isa },
      });
      assert.equal(status, 0, stderr);
      assert.equal(stderr, "");
      const result = JSON.parse(stdout) as { isa: string; cases: number; failures: string[] };
      assert.equal(result.isa, isa);
      assert.deepEqual(result.failures, []);
      assert.equal(result.cases, goldenCases * 16);
    });
  }
});

test("cpu", needsAddon, () => {
  const { isa, available, threads, ...rest } = cpu();
  assert.deepEqual(rest, {});
  assert.ok(available.includes(isa));
  assert.equal(available.at(-1), "scalar");
  assert.ok(Number.isInteger(threads) && threads >= 1);
});

describe("threads", { skip: needsAddon.skip || sameElsewhere.skip }, () => {
  const print = [process.execPath, "-p", "require('gguf-native').cpu().threads"];
  const threads = (command: string[], poolSize?: string) => {
    const { UV_THREADPOOL_SIZE: _size, ...env } = process.env;
    if (poolSize !== undefined) env.UV_THREADPOOL_SIZE = poolSize;
    const { stdout, stderr } = runSync(command[0]!, command.slice(1), { env });
    assert.match(stdout, /^\d+\n$/, stderr);
    return Number(stdout);
  };
  test("as many as can run at once", () => {
    const all = threads(print);
    assert.ok(all >= 1 && all <= cpus().length, `${all}`);
  });
  test("one less than UV_THREADPOOL_SIZE, but at least one", () => {
    const all = threads(print);
    for (const size of [1, 2, 3, 4, 1024]) {
      assert.equal(threads(print, `${size}`), Math.min(all, Math.max(1, size - 1)));
    }
  });
  const noTaskset = !succeeds("taskset", ["-c", "0", "true"]) && "no taskset, or no processor 0";
  test("one on one processor", { skip: noTaskset }, () => {
    assert.equal(threads(["taskset", "-c", "0", ...print]), 1);
  });
});

describe("GGUF_NATIVE_ISA", sameElsewhere, () => {
  const print = ["-p", "require('gguf-native').cpu().isa"];
  test("an unavailable set gives one warning, which names the available ones", () => {
    const { stdout, stderr, status } = run("mmx", print);
    assert.equal(status, 0);
    assert.equal(stdout.trim(), run(undefined, print).stdout.trim());
    const warnings = stderr.split("\n").filter((line) => line.includes("GGUF_NATIVE_ISA"));
    assert.equal(warnings.length, 1, stderr);
    const what = `mmx is not available here (available: ${cpu().available.join(", ")}); using ${stdout.trim()}`;
    assert.ok(warnings[0]!.endsWith(what), stderr);
  });
  test("empty is the same as not set", () => {
    assert.deepEqual(run("", print).stderr, "");
  });
});

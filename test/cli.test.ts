/** The command line as a whole: usage, messages, terminals. Each command has a test file of its own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  at,
  bin,
  expectFailure,
  expectTidy,
  floats,
  folder,
  noTerminal,
  run,
  runInTerminal,
  writeModel,
} from "./support/cli";
import { arr, u32 } from "./support/gguf-writer";
import { projectRoot } from "./support/paths";
import { writeSparseGguf } from "./support/sparse-file";

const COMMANDS = "inspect dequantize stats verify hash diff bench set split merge".split(" ");

writeModel("small.gguf", { tensors: [floats("t", [1, 2, 3, 4])] });

describe("usage", () => {
  test("--help lists every command, and each has help with examples", () => {
    for (const args of [["--help"], ["-h"], ["help"]]) {
      const { status, stdout, stderr } = run(args);
      assert.deepEqual([status, stderr], [0, ""]);
      assert.match(stdout, /^Usage: gguf-native/);
      for (const command of COMMANDS) assert.match(stdout, new RegExp(`^  ${command} `, "m"));
      expectTidy(stdout);
    }
    for (const command of COMMANDS) {
      for (const option of ["--help", "-h"]) {
        const { status, stdout, stderr } = run([command, option]);
        assert.deepEqual([status, stderr], [0, ""]);
        assert.match(stdout, new RegExp(`^Usage: gguf-native ${command} [\\s\\S]*\\nExamples:\\n`));
        expectTidy(stdout);
      }
    }
  });
  test("--version", () => {
    const { version } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
    for (const option of ["--version", "-v"]) assert.equal(run([option]).stdout, `${version}\n`);
  });
  test("the installed command is this one, with a shebang", () => {
    assert.match(readFileSync(bin, "utf8"), /^#!\/usr\/bin\/env node\n/);
  });
  test("wrong usage exits with 2", () => {
    expectFailure([], 2, /missing COMMAND/);
    expectFailure(["explode"], 2, /unknown command 'explode'/);
    expectFailure(["--explode"], 2, /unknown option '--explode'/);
    expectFailure(["constructor"], 2, /unknown command/);
    expectFailure(["model.gguf"], 2, /did you mean 'gguf-native inspect model.gguf'/);
    for (const command of COMMANDS) {
      expectFailure(
        [command, "--explode", "a"],
        2,
        /Unknown option '--explode'; an argument that begins with a dash goes last, after -- \(see gguf-native --help\)$/m,
      );
    }
    for (const command of COMMANDS.filter((name) => name !== "diff" && name !== "bench")) {
      expectFailure([command], 2, /missing FILE/);
    }
    expectFailure(["inspect", "a", "b"], 2, /unexpected argument 'b'/);
    expectFailure(["bench", "a", "b"], 2, /unexpected argument 'b'/);
    expectFailure(["diff", "a"], 2, /missing FILE/);
    expectFailure(["diff", "a", "b", "c"], 2, /unexpected argument 'c'/);
  });
  test("files that cannot be opened or are none exit with 1", () => {
    writeFileSync(at("not.gguf"), "hello\nworld");
    for (const [command, ...rest] of [
      ["inspect"],
      ["verify"],
      ["hash"],
      ["bench"],
      ["dequantize", "t"],
      ["stats", "t"],
      ["diff", "small.gguf"],
    ] as [string, ...string[]][]) {
      expectFailure([command, "none.gguf", ...rest], 1, /none\.gguf: .*No such file/i);
      expectFailure([command, "not.gguf", ...rest], 1, /not\.gguf: not a GGUF file/);
      expectFailure([command, "odd\x1b[31m\nname", ...rest], 1, /odd\\x1b\[31m\\nname/);
    }
  });
});

describe("terminals", { skip: noTerminal }, () => {
  const wait = writeSparseGguf(at("long.gguf"), [
    { name: "long", type: 41, shape: [2 ** 28], byteLength: 2 ** 21 * 18 },
  ]);

  test("titles are bold, unless NO_COLOR or a dumb terminal says no", () => {
    assert.match(runInTerminal(["inspect", "small.gguf"]).shown, /^ESC\[1msmall\.ggufESC\[22m\r\n/);
    for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }]) {
      assert.doesNotMatch(runInTerminal(["inspect", "small.gguf"], env).shown, /ESC/);
    }
  });
  test("progress shows where a command takes long, and is gone when it is done", { skip: wait }, () => {
    const { status, shown } = runInTerminal(["verify", "long.gguf"]);
    assert.equal(status, 0);
    assert.match(shown, /\rESC\[Klong\.gguf {2}\d+ % {2}\d+ s left/);
    assert.match(shown, /\rESC\[KESC\[32mok ESC\[39m {2}long\.gguf {2}1 tensor, 268 M values\r\n$/);
  });
  test("there is none elsewhere", { skip: wait }, () => {
    const { stdout, stderr } = run(["verify", "long.gguf"]);
    assert.equal(stderr, "");
    assert.equal(stdout, "ok   long.gguf  1 tensor, 268 M values\n");
    assert.doesNotMatch(runInTerminal(["verify", "long.gguf"], { TERM: "dumb" }).shown, / % /);
  });
});

test("a reader that stops reading is no error", { skip: process.platform === "win32" && "no sh" }, () => {
  const tokens = Array.from({ length: 300_000 }, (_, i) => `token ${i}`);
  writeModel("tokens.gguf", {
    metadata: [
      ["long", arr("string", tokens)],
      ["x", u32(1)],
    ],
  });
  const command = `"${process.execPath}" "${bin}" inspect --json tokens.gguf; echo "exit $?" >&2`;
  const { stdout, stderr } = spawnSync("sh", ["-c", `(${command}) | head -c 10`], {
    cwd: folder,
    encoding: "utf8",
  });
  assert.equal(stdout.length, 10);
  assert.equal(stderr, "exit 0\n");
});

/** The command line as a whole: usage, messages, terminals. Each command has a test file of its own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { GgufWriter } from "gguf-native";
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
import { emulated } from "./support/emulated";
import { arr, str, u32 } from "./support/gguf-writer";
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

describe("standard output and error", { skip: process.platform === "win32" && "no sh" }, () => {
  writeModel("bad.gguf", { tensors: [floats("t", [Number.NaN])] });
  const shell = (script: string) => spawnSync("sh", ["-c", script], { cwd: folder, encoding: "utf8" });
  const command = `"${process.execPath}" "${bin}"`;

  test("a full disk is one line and exit code 1", {
    skip: !existsSync("/dev/full") && "no /dev/full",
  }, () => {
    for (const args of ["inspect small.gguf", "inspect --json small.gguf", "verify small.gguf", "--help"]) {
      const { status, stderr } = shell(`${command} ${args} >/dev/full`);
      assert.equal(status, 1);
      assert.match(stderr, /^gguf-native: ENOSPC: [^\n]*\n$/);
    }
  });
  test("so is a disk with room for a part", () => {
    // The first write takes 1024 bytes at most, of a shell that counts in larger blocks a few more.
    const script = `trap '' XFSZ; ulimit -f 1; ${command} inspect --metadata parts.gguf >part`;
    const metadata = Array.from(
      { length: 500 },
      (_, i) => [`key.${i}`, u32(i)] as [string, ReturnType<typeof u32>],
    );
    writeModel("parts.gguf", { metadata });
    const { status, stderr } = shell(script);
    assert.equal(status, 1);
    assert.match(stderr, /^gguf-native: EFBIG: [^\n]*\n$/);
    assert.ok(statSync(at("part")).size < 5000);
  });
  test("nobody to read what is wrong changes no exit code", () => {
    // Descriptor 3 has what there is to know.
    const status = (args: string, closed: string) =>
      shell(`{ { sleep 0.3; ${command} ${args}; echo $? >&3; } ${closed} | true; } 3>&1 >/dev/null`).stdout;
    assert.equal(status("verify none.gguf", "2>&1"), "1\n");
    assert.equal(status("verify bad.gguf", ""), "1\n");
    assert.equal(status("verify small.gguf", ""), "0\n");
  });
});

describe("columns", () => {
  const metadata = [["general.name", str("long ".repeat(40))]] as [string, ReturnType<typeof str>][];
  writeModel("wide.gguf", { metadata });
  const width = (columns: string) => {
    const { lines } = run(["inspect", "--metadata", "wide.gguf"], { COLUMNS: columns });
    return Math.max(...lines.map(({ length }) => length));
  };

  test("as COLUMNS says, 80 where that says nothing", () => {
    assert.equal(width("60"), 60);
    assert.equal(width("120"), 120);
    for (const nothing of ["", "0", "-5", "many"]) assert.equal(width(nothing), 80);
  });
  test("never below 40", () => {
    for (const narrow of ["1", "20", "39"]) assert.equal(width(narrow), width("40"));
    assert.ok(width("40") < 60);
  });
});

test("JSON moves no terminal, and loses nothing", () => {
  const name = "a\x7f\x9b31m\u061c\u200e\u2028\u202e\u2066\ufeffz";
  writeModel("name.gguf", { metadata: [[name, str(name)]], tensors: [floats(name, [Number.NaN])] });
  for (const args of [
    ["inspect", "name.gguf"],
    ["verify", "name.gguf"],
    ["hash", "name.gguf"],
    ["stats", "name.gguf", name],
    ["diff", "name.gguf", "small.gguf"],
  ]) {
    const { stdout } = run([...args, "--json"]);
    expectTidy(stdout, Number.POSITIVE_INFINITY);
    assert.doesNotMatch(stdout, /[\u2028\u2029]/);
    assert.ok(JSON.stringify(JSON.parse(stdout)).includes(name), args[0]);
  }
});

test("as many tensors and keys as one likes", { skip: emulated && "too slow" }, async () => {
  const writer = new GgufWriter();
  const count = 150_000;
  for (let i = 0; i < count; i++) writer.set(`k.${i}`, i).addTensor(`t.${i}`, "F32", [1], Float32Array.of(i));
  await writer.write(at("many.gguf"));
  for (const [args, lines] of [
    [["inspect", "many.gguf"], 2 * count],
    [["hash", "many.gguf"], count],
    [["diff", "many.gguf", "small.gguf"], 2 * count],
    [["dequantize", "many.gguf", "--all", "-o", "many.safetensors"], 1],
  ] as [string[], number][]) {
    const result = run(args);
    assert.equal(result.stderr, "");
    assert.ok(result.lines.length > lines, args[0]);
  }
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

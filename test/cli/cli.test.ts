/** The command line as a whole: usage, messages, terminals. Each command has a test file of its own. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { runNode, runSync } from "../support/child";
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
  runProcess,
  withoutColors,
  writeModel,
} from "../support/cli";
import { arr, str, u32 } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { projectRoot } from "../support/paths";
import { writeSparseGguf } from "../support/sparse-file";

const COMMANDS =
  "inspect get dequantize stats verify hash diff show tokens embed view bench quantize convert extract remove rename set split merge recover completion doctor build".split(
    " ",
  );

writeModel("small.gguf", { tensors: [floats("t", [1, 2, 3, 4])] });

// Counting what is covered would write files, too, which some of these scripts forbid.
const env = { ...process.env, LLVM_PROFILE_FILE: "/dev/null" };
const shell = (script: string) => runSync("sh", ["-c", script], { cwd: folder, env });
const command = `"${process.execPath}" "${bin}"`;
const needsShell = { skip: process.platform === "win32" && "no sh" };

describe("usage", () => {
  const wrong = (command: string | string[], message: RegExp) => expectFailure(command, 2, message);

  test("--help lists every command, and each has help with examples", async () => {
    for (const args of [["--help"], ["-h"], ["help"]]) {
      const { status, stdout, stderr } = await run(args);
      assert.deepEqual([status, stderr], [0, ""]);
      assert.match(stdout, /^Usage: gguf-native/);
      for (const command of COMMANDS) assert.match(stdout, new RegExp(`^  ${command} `, "m"));
      expectTidy(stdout);
    }
    for (const command of COMMANDS) {
      for (const option of ["--help", "-h"]) {
        const { status, stdout, stderr } = await run([command, option]);
        assert.deepEqual([status, stderr], [0, ""]);
        assert.match(stdout, new RegExp(`^Usage: gguf-native ${command} [\\s\\S]*\\nExamples:\\n`));
        expectTidy(stdout);
      }
    }
  });
  test("--version", async () => {
    const { version } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
    for (const option of ["--version", "-v"]) assert.equal((await run([option])).stdout, `${version}\n`);
  });
  test("the program has a shebang, and passes text and exit codes on", async () => {
    assert.match(readFileSync(bin, "utf8"), /^#!\/usr\/bin\/env node\n/);
    const good = runProcess(["verify", "small.gguf"]);
    const ofGood = [good.status, good.stdout, good.stderr];
    assert.deepEqual(ofGood, [0, "ok   small.gguf  1 tensor, 4 values\n", ""]);
    const bad = runProcess(["verify", "none.gguf"]);
    assert.deepEqual([bad.status, bad.stdout], [1, "bad  none.gguf  cannot be read\n"]);
    assert.match(bad.stderr, /^gguf-native: none\.gguf: [^\n]*\n$/);
    const wrong = runProcess(["explode"]);
    const ofWrong = [wrong.status, wrong.stdout, wrong.stderr];
    assert.deepEqual(ofWrong, [2, "", "gguf-native: unknown command 'explode' (see gguf-native --help)\n"]);
    const [args, env] = [["inspect", "small.gguf"], { COLUMNS: "40" }] as const;
    assert.equal(runProcess(args, env).stdout, (await run(args, env)).stdout);
  });
  test("wrong usage exits with 2", async () => {
    await wrong("explode", /unknown command 'explode'/);
    await wrong("--explode", /unknown option '--explode'/);
    await wrong("constructor", /unknown command/);
    await wrong("model.gguf", /Did you mean 'gguf-native inspect model\.gguf'\?/);
    for (const command of COMMANDS) {
      const hint = `an argument that begins with a dash goes last, after -- \\(see gguf-native ${command} --help\\)$`;
      await wrong([command, "--zzyzx", "a"], new RegExp(`Unknown option '--zzyzx'; ${hint}`, "m"));
    }
    for (const command of COMMANDS.filter((name) => !/^(diff|embed|bench|completion|doctor|build)$/.test(name))) {
      await wrong([command], /missing FILE/);
    }
    await wrong("recover a c", /unexpected argument 'c'/);
    await wrong("bench a b", /unexpected argument 'b'/);
    for (const command of ["doctor", "build"]) {
      await wrong([command, "a"], /unexpected argument 'a'/);
    }
    await wrong("diff", /missing A/);
    await wrong("diff a", /missing B/);
    await wrong("diff a b c", /unexpected argument 'c'/);
  });
  test("what was probably meant", async () => {
    await wrong("inspct", /unknown command 'inspct'\. Did you mean 'inspect'\? \(see gguf-native --help\)$/m);
    await wrong("inspect a.gguf --filter", /gguf-native: --filter needs a value \(see/);
    await wrong("quantize a b --type -x", /--type needs a value; .* is written --type=VALUE \(see/);
    await expectFailure("hash --check none.txt", 1, /: none\.txt: cannot open: no such file or directory$/m);
    await wrong("inspect a --json=1", /: --json takes no value \(see/);
    await wrong("--versoin", /unknown option '--versoin'\. Did you mean '--version'\?/);
    await wrong(
      "inspect --jsn a",
      /Unknown option '--jsn'\. Did you mean '--json'\? \(see gguf-native inspect --help\)$/m,
    );
    await wrong(
      "dequantize a t -o x.npy --dtype f61",
      /--dtype must be f32, f16 or bf16, not 'f61'\. Did you mean 'f16'\?/,
    );
    await wrong("help sett", /unknown command 'sett'\. Did you mean 'set'\?/);
  });
  test("help set is set --help", async () => {
    for (const command of COMMANDS) {
      assert.deepEqual(await run(["help", command]), await run([command, "--help"]));
    }
  });
  test("files that cannot be opened or are not GGUF exit with 1", async () => {
    writeFileSync(at("not.gguf"), "hello\nworld");
    for (const [command, ...rest] of [
      ["inspect"],
      ["hash"],
      ["bench"],
      ["dequantize", "t"],
      ["stats", "t"],
      ["show", "t"],
      ["tokens"],
      ["diff", "small.gguf"],
    ] as [string, ...string[]][]) {
      await expectFailure([command, "none.gguf", ...rest], 1, /none\.gguf: .*No such file/i);
      await expectFailure([command, "not.gguf", ...rest], 1, /not\.gguf: not a GGUF file/);
      await expectFailure([command, "odd\x1b[31m\nname", ...rest], 1, /odd\\x1b\[31m\\nname/);
    }
    // This one has a verdict on every file.
    for (const [path, verdict, message] of [
      ["none.gguf", "none.gguf  cannot be read", /^gguf-native: none\.gguf: .*No such file/i],
      ["not.gguf", "not.gguf  not a GGUF file", /^gguf-native: not\.gguf: not a GGUF file/],
      ["odd\x1b[31m\nname", "odd\\x1b[31m\\nname  cannot be read", /^gguf-native: odd\\x1b\[31m\\nname: /],
    ] as const) {
      await expectFailure(["verify", path], 1, message, `bad  ${verdict}\n`);
    }
  });
});

describe("terminals", { skip: noTerminal }, () => {
  const wait = writeSparseGguf(at("long.gguf"), [
    { name: "long", type: 41, shape: [2 ** 30], byteLength: 2 ** 23 * 18 },
  ]);

  test("titles are bold, unless NO_COLOR is set or the terminal is dumb", async () => {
    assert.match(runInTerminal(["inspect", "small.gguf"]).shown, /^ESC\[1msmall\.ggufESC\[22m\r\n/);
    for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }, { FORCE_COLOR: "0" }]) {
      assert.doesNotMatch(runInTerminal(["inspect", "small.gguf"], env).shown, /ESC/);
    }
  });
  test("nothing breaks in mid-word", () => {
    const { shown } = runInTerminal(["hash", "small.gguf"]);
    assert.match(shown, /Kt\r\n {2}[0-9a-f]{64}\r\nsmall\.gguf \(whole\)\r\n {2}[0-9a-f]{64}\r\n$/);
    assert.match(runInTerminal(["inspect", "none ".repeat(20)]).shown, /^gguf-native: (none ){12}none\r\n(none ){7}:/);
  });
  test("progress is shown while a command runs, and removed at the end", { skip: wait }, async () => {
    const { status, shown } = runInTerminal(["verify", "long.gguf"]);
    assert.equal(status, 0);
    // How long it takes depends on the machine: the time that is left is tested below.
    assert.match(shown, /\rESC\[Klong\.gguf {2}[█░]+ +\d+ % +[\d,]+ MB\/s/);
    const percents = Array.from(shown.matchAll(/(\d+) %/g), ([, percent]) => Number(percent));
    const expected = [...percents].sort((a, b) => a - b);
    assert.deepEqual(percents, expected);
    assert.equal(percents.at(-1), 100);
    assert.match(
      shown,
      /\rESC\[KESC\[32mok ESC\[39m {2}long\.gguf {2}1 tensor, 1\.07 B values\r\ngguf-native: warning: .*\r\n.*missing\r\n$/,
    );
  });
  test("no progress is shown elsewhere", { skip: wait }, async () => {
    const { stdout, stderr } = await run("verify long.gguf");
    assert.match(stderr, /^gguf-native: warning: [^\n]*\n$/);
    assert.equal(stdout, "ok   long.gguf  1 tensor, 1.07 B values\n");
    assert.doesNotMatch(runInTerminal(["verify", "long.gguf"], { TERM: "dumb" }).shown, / % /);
  });
});

describe("a line of progress", () => {
  // Not part of the package's interface: loaded from where it was built.
  const { Progress } = require(join(projectRoot, "dist", "cli", "output", "progress.js")) as {
    Progress: new (
      label: string,
      total: number,
      unit: "bytes" | "steps",
      stream: { write(text: string): unknown; columns: number | undefined } | undefined,
    ) => { advance(amount: number): void; end(): void };
  };
  /** The lines of a run that takes half a second, as they are at the end of the terminal's width. */
  const linesOf = async (columns: number | undefined, unit: "bytes" | "steps", total = 1e9): Promise<string[]> => {
    const shown: string[] = [];
    const progress = new Progress(`漢字\x1b[31m-${"name".repeat(9)}`, total, unit, {
      write: (text) => shown.push(text),
      columns,
    });
    for (let i = 0; i < 4; i++) {
      progress.advance(total / 4);
      await delay(120);
    }
    progress.end();
    assert.equal(shown.pop(), "\r\x1b[K");
    return shown.map((text) => text.slice("\r\x1b[K".length));
  };
  test("fits, whatever the width", async () => {
    for (const columns of [undefined, 10, 30, 40, 60, 80, 200]) {
      for (const line of await linesOf(columns, "bytes")) {
        expectTidy(line.replaceAll(/[漢字]/g, "xx"), (columns ?? 80) - 1);
        if (columns === undefined || columns >= 40) assert.match(line, /█+░* +\d+ % +[\d,]+ MB\/s( +\d+ s left)?/);
      }
    }
    const [line] = await linesOf(120, "bytes");
    assert.match(line!, /^漢字\\x1b\[31m-(name){9} {2}█{6}░{18} {3}25 % +[\d,]+ MB\/s/);
  });
  test("goes to 100 %, and tells a rate of bytes only", async () => {
    const lines = await linesOf(80, "steps", 4);
    const found = lines.map((line) => / (\d+) %/.exec(line)![1]);
    assert.deepEqual(found, ["25", "50", "75", "100"]);
    assert.doesNotMatch(lines.join(), /B\/s/);
  });
});

describe("standard output and error", needsShell, () => {
  writeModel("bad.gguf", { tensors: [floats("t", [Number.NaN])] });
  test("a full disk is one line and exit code 1", {
    skip: !existsSync("/dev/full") && "no /dev/full",
  }, async () => {
    for (const args of ["inspect small.gguf", "inspect --json small.gguf", "verify small.gguf", "--help"]) {
      const { status, stderr } = shell(`${command} ${args} >/dev/full`);
      assert.equal(status, 1);
      assert.match(stderr, /^gguf-native: ENOSPC: [^\n]*\n$/);
    }
  });
  test("so is a disk with room for a part of the text", async () => {
    // The first write takes 1024 bytes at most, of a shell that counts in larger blocks a few more.
    const script = `trap '' XFSZ; ulimit -f 1; ${command} inspect --metadata parts.gguf >part`;
    const metadata = Array.from({ length: 500 }, (_, i) => [`key.${i}`, u32(i)] as [string, ReturnType<typeof u32>]);
    writeModel("parts.gguf", { metadata });
    const { status, stderr } = shell(script);
    assert.equal(status, 1);
    assert.match(stderr, /^gguf-native: EFBIG: [^\n]*\n$/);
    assert.ok(statSync(at("part")).size < 5000);
  });
  test("a closed standard output or error changes no exit code", async () => {
    // The exit code goes to descriptor 3.
    const status = (args: string, closed: string) =>
      shell(`{ { sleep 0.3; ${command} ${args}; echo $? >&3; } ${closed} | true; } 3>&1 >/dev/null`).stdout;
    assert.equal(status("verify none.gguf", "2>&1"), "1\n");
    assert.equal(status("verify bad.gguf", ""), "1\n");
    assert.equal(status("verify small.gguf", ""), "0\n");
  });
});

test("FORCE_COLOR colours what goes elsewhere, too, and NO_COLOR alone does not", async () => {
  const plain = (await run("inspect small.gguf")).stdout;
  assert.ok(!plain.includes("\x1b"));
  for (const env of [
    { FORCE_COLOR: "1" },
    { FORCE_COLOR: "1", NO_COLOR: "1" },
    { FORCE_COLOR: "true", TERM: "dumb" },
  ]) {
    const { stdout } = await run("inspect small.gguf", env);
    assert.match(stdout.replaceAll("\x1b", "ESC"), /^ESC\[1msmall\.ggufESC\[22m\n[\s\S]*ESC\[35mF32ESC\[39m/);
    assert.equal(withoutColors(stdout), plain);
  }
  for (const env of [{ FORCE_COLOR: "" }, { FORCE_COLOR: "false" }, { NO_COLOR: "1" }]) {
    assert.equal((await run("inspect small.gguf", env)).stdout, plain);
  }
});

test("a command loads no more than it needs, so that it starts quickly", () => {
  const reporter = at("loaded.cjs");
  writeFileSync(reporter, 'process.on("exit", () => console.error(Object.keys(require.cache).join("\\n")));');
  const env = { NODE_OPTIONS: `--require ${JSON.stringify(reporter)}` };
  const { stderr } = runProcess(["inspect", "small.gguf"], env);
  const loaded = stderr.replaceAll("\\", "/");
  assert.match(loaded, /dist\/cli\/commands\/inspect\.js/);
  assert.doesNotMatch(loaded, /dist\/(index|writer\/.*|source\/http|tokenizer\/.*|cli\/work\/.*)\.js/);
  assert.doesNotMatch(runProcess(["--help"], env).stderr, /\.node|dist\/native\.js/);
});

describe("columns", () => {
  const metadata = [["general.name", str("long ".repeat(40))]] as [string, ReturnType<typeof str>][];
  writeModel("wide.gguf", { metadata });
  const width = async (columns: string) => {
    const { lines } = await run("inspect --metadata wide.gguf", { COLUMNS: columns });
    return Math.max(...lines.map(({ length }) => length));
  };

  test("the value of COLUMNS, else 80", async () => {
    assert.equal(await width("60"), 60);
    assert.equal(await width("120"), 120);
    for (const nothing of ["", "0", "-5", "many"]) assert.equal(await width(nothing), 80);
  });
  test("never below 40", async () => {
    for (const narrow of ["1", "20", "39"]) assert.equal(await width(narrow), await width("40"));
    assert.ok((await width("40")) < 60);
  });
});

/** What turns text, or is seen by nobody, as ranges of code points. */
function hiddenRanges(): number[][] {
  const hidden = /[\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/u;
  const ranges: [number, number][] = [];
  for (let code = 0x80; code <= 0x10ffff; code++) {
    if (!hidden.test(String.fromCodePoint(code))) continue;
    const last = ranges.at(-1);
    if (last?.[1] === code - 1) last[1] = code;
    else ranges.push([code, code]);
  }
  return ranges;
}

describe("what is invisible is escaped: names that differ look different", () => {
  const hidden = [0xad, 0x34f, 0x115f, 0x180e, 0x200b, 0x2060, 0x2064, 0x3164, 0xfe0f, 0x1d173, 0xe0041, 0xe007f];
  const names = hidden.map((code) => `a${String.fromCodePoint(code)}`);
  const shown = hidden.map((code) => {
    const digits = code.toString(16);
    return code < 0x100 ? `a\\x${digits}` : code < 0x10000 ? `a\\u${digits.padStart(4, "0")}` : `a\\u{${digits}}`;
  });
  writeModel("hidden.gguf", {
    metadata: names.map((name) => [`key.${name}`, str(`value ${name}`)]),
    tensors: names.map((name) => floats(name, [1])),
  });
  test("on a terminal", async () => {
    const { stdout } = await run("inspect hidden.gguf");
    assert.doesNotMatch(stdout, /\p{Default_Ignorable_Code_Point}/u);
    for (const text of shown) {
      for (const start of ["  ", "key.", "value "]) assert.ok(stdout.includes(start + text), start + text);
    }
    const { stderr } = await run(["show", "hidden.gguf", "b\u200b"]);
    assert.match(stderr, /b\\u200b/i);
  });
  test("by the addon, with a list that is Unicode's", () => {
    const source = readFileSync(join(projectRoot, "native", "core", "text.cc"), "utf8");
    const [list = ""] = /kRanges\[\] = \{[\s\S]*?\};/.exec(source) ?? [];
    const ranges = Array.from(list.matchAll(/\{(0x\w+), (0x\w+)\}/g), ([, a, b]) => [Number(a), Number(b)]);
    assert.deepEqual(ranges, hiddenRanges());
  });
});

test("JSON holds nothing that moves a terminal, and loses nothing", async () => {
  const name = "a\x7f\x9b31m\u061c\u200e\u2028\u202e\u2066\ufeff\u200b\u{e0041}z";
  writeModel("name.gguf", { metadata: [[name, str(name)]], tensors: [floats(name, [Number.NaN])] });
  for (const args of [
    ["inspect", "name.gguf"],
    ["verify", "name.gguf"],
    ["hash", "name.gguf"],
    ["stats", "name.gguf", name],
    ["diff", "name.gguf", "small.gguf"],
  ]) {
    const { stdout } = await run([...args, "--json"]);
    expectTidy(stdout, Number.POSITIVE_INFINITY);
    assert.doesNotMatch(stdout, /[\u2028\u2029]|\p{Default_Ignorable_Code_Point}/u);
    assert.ok(JSON.stringify(JSON.parse(stdout)).includes(name), args[0]);
  }
});

test("a reader that stops reading is no error", needsShell, () => {
  const tokens = Array.from({ length: 300_000 }, (_, i) => `token ${i}`);
  writeModel("tokens.gguf", { metadata: [["long", arr("string", tokens)]] });
  const { stdout, stderr } = shell(`(${command} inspect --json tokens.gguf; echo "exit $?" >&2) | head -c 10`);
  assert.equal(stdout.length, 10);
  assert.equal(stderr, "exit 0\n");
});

// With these flags a thread of V8 nearly always waits for the main thread at the end, and Node waits for that thread.
test("a command ends, with all that it wrote, even if Node does not", needsAddon, () => {
  writeModel("ended.gguf", { tensors: [floats("t", [1, 2, 3])] });
  const flags = ["--stress-concurrent-allocation", "--no-incremental-marking"];
  const outcomes = ["ended.gguf", "ended.gguf", "ended.gguf", "absent.gguf"].map((name) => {
    const args = [...flags, bin, "hash", name];
    const { status, stdout } = runNode(args, { cwd: folder });
    return [status, stdout.split("\n").length];
  });
  assert.deepEqual(outcomes, [
    [0, 3],
    [0, 3],
    [0, 3],
    [1, 1],
  ]);
});

/** Who else is at work: two changes of one file at once, hostile folders, sources that change, journals of others. */
import assert from "node:assert/strict";
import crypto from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync as openDescriptor,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import fs from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { type GgufError, GgufWriter, mergeModel, openSync, recover, setMetadata, splitModel } from "gguf-native";
import { folderJournalPath, journalPath, readJournal, replaceJournal } from "#dist/writer/journal-file";
import { gatherBuffer, OutputFile } from "#dist/writer/output-file";
import { modeFor } from "#dist/writer/permissions";
import { thisProcess } from "#dist/writer/process-identity";
import { temporaryPath, writeAll } from "#dist/writer/system-calls";
import { lineOf, outcomeOf, runNode, start, succeeds } from "../support/child";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sanitized } from "../support/sanitized";

const ROUNDS = Number(process.env.GGUF_NATIVE_RIVALS ?? 40);
const root = temporaryFolder();
const folder = () => mkdtempSync(join(root, "rivals-"));
const skipWindows = process.platform === "win32" && "Windows has other permissions and links";
const needsRoot = { skip: process.getuid?.() !== 0 && "needs root: other users' files" };
const onLinux = { skip: process.platform !== "linux" && "only Linux has /proc, and shares data by descriptors" };
const LONG = "x".repeat(10_000);

async function written(dir = folder(), name = "model.gguf"): Promise<string> {
  const path = join(dir, name);
  const writer = new GgufWriter().set("general.architecture", "test").set("general.description", LONG);
  for (let i = 0; i < 12; i++) writer.addTensor(`t${i}`, "F32", [64], new Float32Array(64).fill(i));
  await writer.write(path);
  return path;
}

function valuesOf(path: string): Map<string, unknown> {
  using file = openSync(path);
  return new Map(file.metadata);
}

const names = (dir: string) => readdirSync(dir).sort();

describe("changes of one file at once", () => {
  test(`in one process, ${ROUNDS} rounds: all are applied`, async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const path = await written();
      const link = join(folder(), "other.gguf");
      if (!skipWindows) symlinkSync(path, link);
      const other = skipWindows ? relative(process.cwd(), path) : link;
      const inPlace = [undefined, true, false][i % 3];
      const text = String(i % 10).repeat(LONG.length);
      await Promise.all([
        setMetadata(path, { "test.first": i }, { inPlace }),
        setMetadata(other, { "general.description": text, "test.twice": 1 }, { inPlace }),
        setMetadata(path, { "test.twice": 2 }),
      ]);
      const values = valuesOf(path);
      assert.equal(values.get("test.first"), i);
      assert.equal(values.get("general.description"), text);
      assert.equal(values.get("test.twice"), 2, "in the order of the calls");
    }
  });

  test("in one process, by two hard links: all are applied", { skip: skipWindows }, async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const path = await written();
      const other = join(folder(), "other.gguf");
      linkSync(path, other);
      const text = String(i % 10).repeat(LONG.length);
      await Promise.all([
        setMetadata(path, { "general.architecture": "tess" }, { inPlace: true }),
        setMetadata(other, { "general.description": text }, { inPlace: true }),
      ]);
      const values = valuesOf(path);
      assert.equal(values.get("general.architecture"), "tess");
      assert.equal(values.get("general.description"), text);
    }
  });

  test("between processes: each one is applied, or fails with ERR_GGUF_CHANGED", async () => {
    // On Windows also with EPERM: a file cannot be replaced while another process waits with it for its turn.
    const path = await written();
    const script = `
      const { setMetadata } = require("gguf-native");
      const [path, key, inPlace] = process.argv.slice(1);
      (async () => {
        for (let i = 1; i <= ${ROUNDS}; i++) {
          for (;;) {
            try {
              await setMetadata(path, { [key]: i, ["long." + key]: String(i % 10).repeat(6000) },
                { inPlace: inPlace === "in place" ? true : undefined });
              break;
            } catch (error) {
              const isOpen = process.platform === "win32" && error.cause?.code === "EPERM";
              if (error.code !== "ERR_GGUF_CHANGED" && !isOpen) throw error;
            }
          }
        }
      })();`;
    const run = (key: string, inPlace: string) =>
      outcomeOf(start(process.execPath, ["-e", script, path, key, inPlace], { cwd: projectRoot }));
    const ended = await Promise.all([run("test.a", "in place"), run("test.b", "beside")]);
    for (const { status, stderr } of ended) assert.equal(status, 0, stderr);
    const values = valuesOf(path);
    assert.deepEqual([values.get("test.a"), values.get("test.b")], [ROUNDS, ROUNDS]);
    assert.deepEqual(names(join(path, "..")), ["model.gguf"]);
  });

  const noTouch = process.platform === "win32" && "no 'touch', which sets times to the nanosecond";
  test("a header that changed within one tick of the clock is noticed", { skip: noTouch }, async () => {
    const path = await written();
    const content = readFileSync(path);
    function* onTheWay(): Generator<[string, number]> {
      const { atimeNs, mtimeNs } = statSync(path, { bigint: true });
      content[8 + 8 + 8 + 8]! ^= 1;
      writeFileSync(path, content);
      // To the nanosecond: fs.utimes rounds.
      const stamp = `@${mtimeNs / 10n ** 9n}.${String(mtimeNs % 10n ** 9n).padStart(9, "0")}`;
      assert.ok(succeeds("touch", ["-m", "-d", stamp, path]), String(atimeNs));
      yield ["test.first", 1];
    }
    const expected = { code: "ERR_GGUF_CHANGED", message: /header/ };
    for (const inPlace of [true, false]) {
      await assert.rejects(setMetadata(path, onTheWay(), { inPlace }), expected);
      assert.deepEqual(readFileSync(path), content);
    }
  });
});

describe("where the header is changed", () => {
  test("by default in place only within one page", async () => {
    const path = await written();
    const { ino } = statSync(path);
    const long = "y".repeat(LONG.length);
    for (const [changes, inPlace, is] of [
      [{ "general.architecture": "tess" }, undefined, true],
      [{ "general.description": long }, true, true],
      [{ "general.description": LONG }, undefined, false],
      [{ "general.architecture": "test" }, false, false],
    ] as const) {
      assert.deepEqual(await setMetadata(path, changes, { inPlace }), { inPlace: is });
      if (is) assert.equal(statSync(path).ino, ino);
    }
    const fresh = await written();
    assert.deepEqual(readFileSync(path), readFileSync(fresh));
    const both = { inPlace: true, output: "x" };
    await assert.rejects(setMetadata(path, {}, both), { code: "ERR_INVALID_ARG_VALUE" });
    await assert.rejects(setMetadata(path, {}, { inPlace: 1 as never }), { code: "ERR_INVALID_ARG_TYPE" });
  });

  test("an alignment of 2^31 in a sparse file takes no memory", async () => {
    const path = join(folder(), "sparse.gguf");
    const header = new GgufWriter({ alignment: 2 ** 31 })
      .set("test.number", 1)
      .addTensor("t", "F32", [0], new Uint8Array());
    for await (const chunk of header.chunks()) {
      writeFileSync(path, chunk);
      break;
    }
    truncateSync(path, 2 ** 31);
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }, 1);
    await setMetadata(path, { "test.number": 2 });
    clearInterval(timer);
    assert.equal(valuesOf(path).get("test.number"), 2);
    assert.ok(most < 64 << 20, `${most} bytes`);
  });

  test("hard links are parted by a changed copy", { skip: skipWindows }, async () => {
    const path = await written();
    const other = join(path, "..", "other.gguf");
    linkSync(path, other);
    const before = readFileSync(path);
    await setMetadata(path, { "general.description": "short" });
    assert.deepEqual(readFileSync(other), before);
  });
});

describe("hostile folders", { skip: skipWindows }, () => {
  test("what is written is for its owner alone until it is finished", async () => {
    const path = await written();
    chmodSync(path, 0o600);
    const modes = new Set<number>();
    const onProgress = () => {
      for (const name of names(join(path, ".."))) modes.add(statSync(join(path, "..", name)).mode & 0o777);
    };
    await setMetadata(path, { "general.description": "short" }, { onProgress });
    assert.deepEqual([...modes], [0o600]);
    const fresh = join(folder(), "new.gguf");
    await setMetadata(path, {}, { output: fresh });
    assert.equal(statSync(fresh).mode & 0o777, 0o666 & ~process.umask());
  });

  test("a link or a file in the place of the temporary one is neither followed nor renamed", async () => {
    for (const kind of ["link", "file"]) {
      const path = await written();
      const before = readFileSync(path);
      const secret = join(folder(), "secret");
      writeFileSync(secret, "secret", { mode: 0o600 });
      const onProgress = () => {
        const name = names(join(path, "..")).find((each) => each.endsWith(".tmp"));
        if (name === undefined) return;
        const temporary = join(path, "..", name);
        renameSync(temporary, join(root, "taken"));
        if (kind === "link") symlinkSync(secret, temporary);
        else writeFileSync(temporary, readFileSync(join(root, "taken")));
      };
      await assert.rejects(setMetadata(path, { "general.description": "short" }, { onProgress }), {
        code: "ERR_GGUF_CHANGED",
      });
      assert.equal(statSync(secret).mode & 0o777, 0o600);
      assert.ok(lstatSync(path).isFile());
      assert.deepEqual(readFileSync(path), before);
    }
  });

  test("a file or a link that is there under the temporary name stays, and nothing is written", async (t) => {
    const path = await written();
    const dir = join(path, "..");
    t.mock.method(crypto, "randomBytes", (count: number) => Buffer.alloc(count, 7));
    const temporary = temporaryPath(dir);
    const secret = join(folder(), "secret");
    writeFileSync(secret, "secret");
    for (const put of [() => symlinkSync(secret, temporary), () => linkSync(secret, temporary)]) {
      put();
      const fresh = join(dir, "new.gguf");
      const exists = { code: "ERR_GGUF_WRITE", message: /EEXIST/ };
      await assert.rejects(new GgufWriter().set("a.b", 1).write(fresh), exists);
      assert.deepEqual([readFileSync(secret, "utf8"), existsSync(fresh)], ["secret", false]);
      rmSync(temporary);
    }
  });

  test("a file of the same size in the place of a complete one does not get its name", async (t) => {
    const path = await written();
    const before = readFileSync(path);
    const { lstat } = fs;
    let looks = 0;
    t.mock.method(fs, "lstat", (file: string, options?: object) => {
      if (file.endsWith(".tmp") && looks++ === 0) {
        const other = join(root, "same-size");
        writeFileSync(other, new Uint8Array(statSync(file).size));
        renameSync(other, file);
      }
      return lstat(file, options);
    });
    await assert.rejects(setMetadata(path, { "general.description": "short" }), {
      code: "ERR_GGUF_CHANGED",
      message: /another program has put something else in the place/,
    });
    assert.equal(looks > 0, true);
    assert.deepEqual(readFileSync(path), before);
  });

  test("a file that is not as long as its header promises is not finished", async () => {
    for (const promised of [2, 4]) {
      const file = await OutputFile.create(join(folder(), "new.gguf"), gatherBuffer(), true);
      await file.write(Uint8Array.of(1, 2, 3));
      await assert.rejects(file.finish(promised), { code: "ERR_GGUF_CHANGED" });
      await file.discard();
    }
  });

  test("memory that is taken away while the system writes it is an error", async () => {
    const handle = await fs.open(join(folder(), "new.bin"), "w");
    const bytes = new Uint8Array(2 ** 20);
    const writing = writeAll(handle, bytes);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    await assert.rejects(writing, { code: "ERR_GGUF_CHANGED" });
    await handle.close();
  });

  test("setuid and setgid stay with owner and group alone", () => {
    const existing = { mode: 0o106755, uid: 1, gid: 2 };
    const modes = [modeFor(existing, 1, 2), modeFor(existing, 3, 2), modeFor(existing, 1, 3)];
    assert.deepEqual(modes, [0o6755, 0o755, 0o755]);
  });

  test("owner, group and mode stay where they can", needsRoot, async () => {
    const path = await written();
    chownSync(path, 12345, 23456);
    chmodSync(path, 0o4750);
    const warnings: string[] = [];
    await setMetadata(path, { "general.description": "short" }, { onWarning: (text) => warnings.push(text) });
    const { uid, gid, mode } = statSync(path);
    assert.deepEqual([uid, gid, mode & 0o7777], [12345, 23456, 0o4750]);
    assert.deepEqual(warnings, []);
  });

  test("without the owner there is no setuid, and another group gets no more than everybody", needsRoot, async () => {
    const dir = folder();
    chmodSync(root, 0o755);
    chmodSync(dir, 0o777);
    const path = await written(dir);
    chownSync(path, 12345, 23456);
    chmodSync(path, 0o6776);
    const script = `
      process.setgroups([]); process.setgid(54321); process.setuid(54321);
      const { setMetadata } = require("gguf-native");
      setMetadata(process.argv[1], { "general.description": "short" }, { onWarning: (text) => console.log(text) });`;
    // The project itself may be where only root can read.
    const args = ["-e", `require("gguf-native");${script}`, path];
    const { stdout, stderr } = runNode(args, { cwd: projectRoot });
    assert.match(stdout, /belongs to user 54321 and group 54321, .* user 12345 and group 23456/, stderr);
    const { uid, gid, mode } = statSync(path);
    assert.deepEqual([uid, gid, mode & 0o7777], [54321, 54321, 0o766]);
    assert.equal(valuesOf(path).get("general.description"), "short");
  });
});

describe("what the system can and cannot do", () => {
  test("data is shared where the file system can, and only the header is written", onLinux, async (t) => {
    const { copyFile } = fs;
    // As a file system that can share: this one may not.
    const { mock } = t.mock.method(fs, "copyFile", (from: string, to: string) => copyFile(from, to));
    for (const [text, mode] of [
      ["y".repeat(LONG.length), 0o644],
      ["short", 0o644],
      ["y".repeat(LONG.length), 0o4755],
    ] as const) {
      const [path, expected] = [await written(), await written()];
      chmodSync(path, mode);
      mock.resetCalls();
      await setMetadata(expected, { "general.description": text }, { inPlace: true });
      assert.deepEqual(await setMetadata(path, { "general.description": text }), { inPlace: false });
      const shares = text !== "short" && mode === 0o644;
      assert.equal(mock.callCount(), shares ? 1 : 0);
      if (shares) assert.deepEqual(readFileSync(path), readFileSync(expected));
      assert.equal(valuesOf(path).get("general.description"), text);
      assert.equal(statSync(path).mode & 0o7777, mode);
    }
  });

  test("a file in a folder that cannot be written to is changed in one page, and no further", needsRoot, async () => {
    const dir = folder();
    chmodSync(root, 0o755);
    chmodSync(dir, 0o755);
    const path = await written(dir);
    chownSync(path, 54321, 54321);
    const script = `
      const { setMetadata } = require("gguf-native");
      process.setgroups([]); process.setgid(54321); process.setuid(54321);
      (async () => {
        const path = process.argv[1];
        console.log(await setMetadata(path, { "general.architecture": "tess" }));
        const change = { "general.description": "y".repeat(10000) };
        for (const inPlace of [true, undefined]) {
          await setMetadata(path, change, { inPlace }).catch((error) => console.log(error.code));
        }
      })();`;
    const { stdout, stderr } = runNode(["-e", script, path], { cwd: projectRoot });
    assert.equal(stdout, "{ inPlace: true }\nERR_GGUF_WRITE\nERR_GGUF_WRITE\n", stderr);
    const values = valuesOf(path);
    assert.deepEqual([values.get("general.architecture"), values.get("general.description")], ["tess", LONG]);
  });
});

describe("sources that change while they are written", () => {
  const cases: [name: string, take: (buffer: ArrayBuffer) => void][] = [
    ["detached", (buffer) => structuredClone(buffer, { transfer: [buffer] })],
    ["made smaller", (buffer) => (buffer as unknown as { resize(size: number): void }).resize(64)],
  ];
  for (const [name, take] of cases) {
    for (const when of ["before", "during"]) {
      test(`${name} ${when} writing: the old file stays`, async () => {
        const path = await written();
        const before = readFileSync(path);
        const Resizable = ArrayBuffer as unknown as new (size: number, options: object) => ArrayBuffer;
        const buffer = new Resizable(8 << 20, { maxByteLength: 8 << 20 });
        const writer = new GgufWriter().addTensor("t", "I8", [8 << 20], new Uint8Array(buffer));
        if (when === "before") take(buffer);
        let calls = 0;
        // After the header, and within the data.
        const onProgress = () => void (calls++ === 1 && when === "during" && take(buffer));
        const wrong = (error: GgufError) => ["ERR_GGUF_RANGE", "ERR_GGUF_CHANGED"].includes(error.code);
        await assert.rejects(writer.write(path, { onProgress }), wrong);
        assert.deepEqual(readFileSync(path), before);
        assert.deepEqual(names(join(path, "..")), ["model.gguf"]);
      });
    }
  }
});

describe("several files that replace others", () => {
  const inputError = () => Object.assign(new Error("no"), { code: "EIO" });

  test("an error at the second name puts the first one back", async (t) => {
    const dir = folder();
    const paths = await splitModel(await written(), join(dir, "m"), { maxTensors: 5 });
    const before = paths.map((path) => readFileSync(path));
    const { rename } = fs;
    let failures = 0;
    t.mock.method(fs, "rename", async (from: string, to: string) => {
      if (to === paths[1] && from.endsWith(".tmp") && failures++ === 0) throw inputError();
      return rename(from, to);
    });
    const failed = { code: "ERR_GGUF_WRITE" };
    await assert.rejects(splitModel(paths[0]!, join(dir, "m"), { maxTensors: 4 }), failed);
    for (const [i, path] of paths.entries()) assert.deepEqual(readFileSync(path), before[i]);
    assert.deepEqual(names(dir), paths.map((path) => basename(path)).sort());
  });

  test("what can be neither done nor undone is kept, and the error says what to do", async (t) => {
    const dir = folder();
    const paths = await splitModel(await written(), join(dir, "m"), { maxTensors: 5 });
    const { rename } = fs;
    let renames = 0;
    t.mock.method(fs, "rename", async (from: string, to: string) => {
      if (paths.includes(to) && ++renames > 1) throw inputError();
      return rename(from, to);
    });
    const failed = { code: "ERR_GGUF_WRITE", message: /gguf-native recover/ };
    await assert.rejects(splitModel(paths[0]!, join(dir, "m"), { maxTensors: 4 }), failed);
    t.mock.restoreAll();
    const [done] = await recover(dir);
    assert.equal(done?.outcome, "finished");
    using file = openSync(paths[2]!, { splits: false });
    assert.deepEqual([...file.tensors.keys()], ["t8", "t9", "t10", "t11"]);
    assert.deepEqual(names(dir), paths.map((path) => basename(path)).sort());
  });
});

describe("journals", () => {
  test("of another user, or a link, are not followed", needsRoot, async (t) => {
    const path = await written();
    const { mock } = t.mock.method(fs, "link");
    await setMetadata(path, { "general.description": LONG });
    const journal = mock.calls.at(-1)!.arguments[1] as string;
    t.mock.restoreAll();
    assert.match(journal, /gguf-native\.[0-9a-f]{16}\.journal$/);
    const victim = join(path, "..", "victim");
    writeFileSync(victim, "victim");
    const temporary = "gguf-native.0123456789ab.tmp";
    writeFileSync(join(path, "..", temporary), "evil");
    const inode = String(statSync(join(path, "..", temporary)).ino);
    for (const target of ["victim", "../victim"]) {
      const plan = { kind: "rename", outputs: [{ temporary, inode, target, backup: null }] };
      const body = `${JSON.stringify({ owner: null, plan })}\n`;
      writeFileSync(journal, `${crypto.createHash("sha256").update(body).digest("hex")}\n${body}`);
      if (target === "victim") chownSync(journal, 12345, 12345);
      const message = target === "victim" ? /another user/ : /names files elsewhere/;
      await assert.rejects(setMetadata(path, { "test.x": 1 }), { code: "ERR_GGUF_WRITE", message });
      assert.equal(readFileSync(victim, "utf8"), "victim");
      rmSync(journal);
    }
    symlinkSync(victim, journal);
    await assert.rejects(setMetadata(path, { "test.x": 1 }), { code: "ERR_GGUF_WRITE" });
    assert.equal(readFileSync(victim, "utf8"), "victim");
  });

  test("of another user about bytes are followed only in that user's files", needsRoot, async () => {
    for (const [owner, isFollowed] of [
      [12345, true],
      [54321, false],
    ] as const) {
      const path = await written();
      const before = readFileSync(path);
      const [offset, inode] = [before.indexOf("xxxx"), String(statSync(path).ino)];
      const images = { before: Buffer.from("yyxx"), after: Buffer.from("xxyy") };
      const plan = { kind: "overwrite", target: "model.gguf", inode, offset, ...images } as const;
      const journal = journalPath(path);
      await replaceJournal(journal, { owner: null, plan });
      chownSync(journal, 12345, 12345);
      chownSync(path, owner, owner);
      if (isFollowed) {
        assert.deepEqual(await recover(path), [{ journal, outcome: "undone" }]);
        before.set(images.before, offset);
      } else {
        await assert.rejects(recover(path), { code: "ERR_GGUF_WRITE", message: /journal of another user/ });
      }
      assert.deepEqual(readFileSync(path), before);
    }
  });

  test("about a file that another has replaced since change nothing", async () => {
    for (const isSame of [true, false]) {
      const path = await written();
      const before = readFileSync(path);
      const inode = String(statSync(path).ino + (isSame ? 0 : 1));
      const images = { before: Buffer.from("none"), after: Buffer.from("evil") };
      const plan = { kind: "overwrite", target: "model.gguf", inode, offset: 64, ...images } as const;
      await replaceJournal(journalPath(path), { owner: null, plan });
      if (isSame) await assert.rejects(recover(path), /neither as before an interrupted change nor as after/);
      else assert.equal((await recover(path))[0]?.outcome, "nothing");
      assert.deepEqual(readFileSync(path), before);
    }
  });

  /** Runs `work` with `swap` called once, right before the call of the file system that is about such a path. */
  async function swapping(
    t: TestContext,
    call: "link" | "lstat",
    which: RegExp,
    swap: () => void,
    work: () => Promise<unknown>,
  ) {
    const original = fs[call] as (...args: unknown[]) => unknown;
    let isDone = false;
    t.mock.method(fs, call, (...args: unknown[]) => {
      const isNow = !isDone && which.test(String(args[call === "link" ? 1 : 0]));
      isDone ||= isNow;
      if (isNow) swap();
      return original(...args);
    });
    await work();
    t.mock.restoreAll();
    assert.ok(isDone);
  }

  test("that have become another's, or were removed, stop a change", async (t) => {
    const copy = { values: { "general.description": "short" }, options: { inPlace: false } };
    const changes = {
      copy,
      removed: copy,
      "one page": { values: { "general.architecture": "tess" }, options: {} },
      "in place": {
        values: { "general.description": LONG.replaceAll("x", "y") },
        options: { inPlace: true },
      },
    };
    for (const work of ["copy", "removed", "one page", "in place", "several"] as const) {
      const path = await written();
      const dir = join(path, "..");
      const before = readFileSync(path);
      const journal = work === "several" ? journalPath(join(dir, "n-00001-of-00003.gguf")) : journalPath(path);
      // When the temporary file is looked at, or the journal itself before it is written again.
      await swapping(
        t,
        "lstat",
        changes[work as keyof typeof changes] === copy ? /\.tmp$/ : /\.journal$/,
        () => {
          if (work === "removed") return rmSync(journal);
          writeFileSync(join(dir, "other"), "another's");
          renameSync(join(dir, "other"), journal);
        },
        () =>
          assert.rejects(
            work === "several"
              ? splitModel(path, join(dir, "n"), { maxTensors: 4 })
              : setMetadata(path, changes[work].values, changes[work].options),
            { code: "ERR_GGUF_CHANGED", message: /removed the journal of this change/ },
          ),
      );
      assert.deepEqual(readFileSync(path), before, work);
      if (work !== "removed") assert.equal(readFileSync(journal, "utf8"), "another's");
      assert.equal(names(dir).length, work === "removed" ? 1 : 2, work);
    }
  });

  test("that have become another's are not carried out", async (t) => {
    const path = await written();
    const dir = join(path, "..");
    const temporary = "gguf-native.0123456789ab.tmp";
    writeFileSync(join(dir, temporary), "old plan");
    const inode = String(statSync(join(dir, temporary)).ino);
    const outputs = [{ temporary, inode, target: "model.gguf", backup: temporary }];
    const journal = journalPath(path);
    await replaceJournal(journal, { owner: null, plan: { kind: "rename", outputs } });
    const other = join(folder(), "other");
    await replaceJournal(other, { owner: thisProcess() });
    const before = readFileSync(path);
    await swapping(
      t,
      "link",
      /\.recovery$/,
      () => renameSync(other, journal),
      () => assert.rejects(recover(path), { code: "ERR_GGUF_CHANGED", message: /another process/ }),
    );
    assert.deepEqual(readFileSync(path), before);
    assert.deepEqual((await readJournal(journal))?.content?.owner, thisProcess());
  });

  test("everything is on the disk before a name leads to it", onLinux, async () => {
    const path = await written();
    const script = `const fs = require("node:fs"), files = require("node:fs/promises"), { basename } = require("node:path");
      const { fsync } = fs, log = [];
      fs.fsync = (fd, done) => {
        log.push(["sync", basename(fs.readlinkSync("/proc/self/fd/" + fd))]);
        fsync(fd, done);
      };
      for (const name of ["rename", "link"]) {
        const call = files[name];
        files[name] = (from, to) => {
          log.push([name, basename(from), basename(to)]);
          return call(from, to);
        };
      }
      const { splitModel, setMetadata } = require(${JSON.stringify(projectRoot)});
      (async () => {
        await splitModel(${JSON.stringify(path)}, ${JSON.stringify(join(path, "..", "n"))}, { maxTensors: 6 });
        await setMetadata(${JSON.stringify(path)}, { "general.description": "short" }, { inPlace: false });
        console.log(JSON.stringify(log));
      })();`;
    const log = JSON.parse(await lineOf(["-e", script])) as string[][];
    const folderName = basename(join(path, ".."));
    let models = 0;
    let plans = 0;
    log.forEach(([call, from, to = ""], i) => {
      const isPlan = call === "rename" && to.endsWith(".journal");
      if (!isPlan && !to.endsWith(".gguf")) return;
      isPlan ? plans++ : models++;
      const isSync = (name: string) => (each: string[]) => each[0] === "sync" && each[1] === name;
      assert.ok(log.slice(0, i).some(isSync(from as string)), `${from} before it is ${to}`);
      assert.ok(log.slice(i).some(isSync(folderName)), `the folder after ${to}`);
      // The plan is there before what it is about.
      if (isPlan) assert.ok(isSync(folderName)(log[i + 1] as string[]));
    });
    assert.deepEqual([models, plans], [3, 1]);
  });

  test("a name that nothing had is not taken from what has appeared since", async () => {
    const path = await written();
    const dir = join(path, "..");
    const outputs = [1, 2].map((i) => {
      const temporary = `gguf-native.00000000000${i}.tmp`;
      writeFileSync(join(dir, temporary), "new");
      const inode = String(statSync(join(dir, temporary)).ino);
      return { temporary, inode, target: `n${i}.gguf`, backup: null };
    });
    writeFileSync(join(dir, "n2.gguf"), "mine");
    await replaceJournal(folderJournalPath(dir), { owner: null, plan: { kind: "rename", outputs } });
    const [done, ...others] = await recover(dir);
    assert.deepEqual([done?.outcome, others], ["undone", []]);
    assert.deepEqual([readFileSync(join(dir, "n2.gguf"), "utf8"), names(dir).length], ["mine", 2]);
  });

  test("a file of a living process: whoever comes later waits, and recover() says so", async (t) => {
    const path = await written();
    let release: () => void = () => undefined;
    const { rename } = fs;
    const held = new Promise<void>((entered) => {
      t.mock.method(fs, "rename", async (from: string, to: string) => {
        entered();
        await new Promise<void>((done) => {
          release = done;
        });
        return rename(from, to);
      });
    });
    const merging = mergeModel(path, path);
    await held;
    t.mock.restoreAll();
    await assert.rejects(recover(path), { code: "ERR_GGUF_CHANGED", message: /process \d+/ });
    const setting = setMetadata(path, { "test.x": 1 });
    setTimeout(release, 50);
    await merging;
    await setting;
    assert.equal(valuesOf(path).get("test.x"), 1);
    assert.deepEqual(await recover(path), []);
  });
});

test("a name of a descriptor is not replaced, however it is spelled", onLinux, async () => {
  const source = await written();
  const path = join(folder(), "out.gguf");
  writeFileSync(path, "old");
  const fd = openDescriptor(path, "r+");
  const links = join(folder(), "fds");
  symlinkSync("/proc/self/fd", links);
  const { pid } = process;
  for (const name of ["/dev/fd", "/proc/self/fd", `/proc/${pid}/fd`, `/proc/${pid}/task/${pid}/fd`, links]) {
    await assert.rejects(mergeModel(source, `${name}/${fd}`), { code: "ERR_GGUF_WRITE" });
    assert.equal(readFileSync(path, "utf8"), "old");
  }
});

const measured = { skip: skipWindows || (sanitized && "sanitizers take memory of their own") };
test("memory does not grow with the number of outputs", measured, async () => {
  const dir = folder();
  mkdirSync(join(dir, "out"));
  const script = `
    const { GgufWriter, splitModel } = require(${JSON.stringify(projectRoot)});
    (async () => {
      const writer = new GgufWriter();
      for (let i = 0; i < 1000; i++) writer.addTensor("t" + i, "F32", [8], new Float32Array(8));
      await writer.write("m.gguf");
      const paths = await splitModel("m.gguf", "out/m", { maxTensors: 1 });
      console.log(paths.length, process.resourceUsage().maxRSS >> 10);
    })();`;
  const line = await lineOf(["-e", script], { cwd: dir });
  const [count, megabytes] = line.split(" ").map(Number) as [number, number];
  assert.equal(count, 1000);
  assert.ok(megabytes < 120, `${megabytes} MB`);
});

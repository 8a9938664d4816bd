/** What processes leave that are killed while they write: whose it is, and who removes it. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { GgufWriter, mergeModel, recover, setMetadata, splitModel } from "gguf-native";
import { folderJournalPath, journalPath } from "#dist/writer/journal-file";
import { processTag, thisProcess } from "#dist/writer/process-identity";
import { runNode } from "../support/child";
import { run } from "../support/cli";
import { projectRoot, temporaryFolder } from "../support/paths";

const skip = process.platform !== "linux" && "only Linux tells when a process started";
const root = temporaryFolder();
const LONG = "x".repeat(10_000);

async function scene(): Promise<{ dir: string; path: string }> {
  const dir = mkdtempSync(join(root, "left-"));
  const path = join(dir, "model.gguf");
  const writer = new GgufWriter().set("general.architecture", "test").set("general.description", LONG);
  for (let i = 0; i < 4; i++) writer.addTensor(`t${i}`, "F32", [64], new Float32Array(64));
  await writer.write(path);
  return { dir, path };
}

let count = 0;
const named = (tag: string) => `gguf-native.${tag}-${String(++count).padStart(12, "0")}.tmp`;
const parts = processTag().split("-");
/** The tag of this process with other parts. */
const tagWith = (changes: Record<number, string>) => parts.map((part, i) => changes[i] ?? part).join("-");

/** The tag of a process that has ended. */
function endedTag(): string {
  const script = `process.stdout.write(require("./dist/writer/process-identity.js").processTag())`;
  return runNode(["-e", script], { cwd: projectRoot }).stdout;
}

function writeJournal(path: string, owner: object | null, plan?: object): void {
  const body = `${JSON.stringify({ owner, plan })}\n`;
  writeFileSync(path, `${createHash("sha256").update(body).digest("hex")}\n${body}`);
}

describe("temporary files of processes that have ended", { skip }, () => {
  const writers: [name: string, write: (path: string, dir: string) => Promise<unknown>][] = [
    ["recover", (path) => recover(path)],
    ["recover of the folder", (_, dir) => recover(dir)],
    ["GgufWriter.write", (_, dir) => new GgufWriter().set("a.b", 1).write(join(dir, "new.gguf"))],
    ["setMetadata in place", (path) => setMetadata(path, { "general.architecture": "tess" })],
    ["setMetadata", (path) => setMetadata(path, { "general.description": "short" })],
    ["splitModel", (path, dir) => splitModel(path, join(dir, "s"), { maxTensors: 2 })],
    ["mergeModel", (path, dir) => mergeModel(path, join(dir, "new.gguf"))],
  ];
  for (const [name, write] of writers) {
    test(`${name} removes them, and nothing else`, async () => {
      const { dir, path } = await scene();
      const gone = [
        named(endedTag()),
        // The number is used again by a process that started later: this one.
        named(tagWith({ 4: "1" })),
        // Before the machine was started.
        named(tagWith({ 1: "00000000" })),
      ];
      const staying = [
        named(processTag()),
        // On another machine, in another container.
        named(tagWith({ 0: "00000000" })),
        named(tagWith({ 2: "00000000", 3: "999999999" })),
        named("0123-4567"),
        "gguf-native.0123456789ab.tmp",
        "gguf-native.0123456789ab.old",
        `${named(endedTag())}.gguf`,
      ];
      for (const each of [...gone, ...staying]) writeFileSync(join(dir, each), "part");
      const [link, folder, another] = [named(endedTag()), named(endedTag()), named(endedTag())];
      symlinkSync(path, join(dir, link));
      mkdirSync(join(dir, folder));
      if (process.getuid?.() === 0) {
        writeFileSync(join(dir, another), "of another user");
        chownSync(join(dir, another), 12345, 12345);
        staying.push(another);
      }
      const done = await write(path, dir);
      if (name.startsWith("recover")) {
        const removed = (done as { temporary: string; outcome: string }[]).map((each) => Object.values(each));
        assert.deepEqual(
          removed.sort(),
          gone.sort().map((each) => [join(dir, each), "removed"]),
        );
      }
      const names = readdirSync(dir);
      for (const each of gone) assert.ok(!names.includes(each), `${each} is left`);
      for (const each of [...staying, link, folder]) assert.ok(names.includes(each), `${each} is gone`);
      assert.ok(lstatSync(path).isFile());
    });
  }

  test("what a journal names stays until that is settled", async () => {
    const { dir } = await scene();
    const temporary = named(endedTag());
    writeFileSync(join(dir, temporary), "complete");
    const inode = String(lstatSync(join(dir, temporary)).ino);
    const plan = { kind: "rename", outputs: [{ temporary, inode, target: "other.gguf", backup: null }] };
    const journal = folderJournalPath(dir).replace(/[0-9a-f]{16}/, "0".repeat(16));
    writeJournal(journal, { ...thisProcess(), started: "1" }, plan);
    const path = join(dir, "model.gguf");
    assert.deepEqual(await recover(path), []);
    await setMetadata(path, { "general.description": "short" });
    assert.equal(readFileSync(join(dir, temporary), "utf8"), "complete");
    // Nor where a journal cannot be understood.
    writeFileSync(journal, "no journal");
    assert.deepEqual(await recover(path), []);
    assert.equal(readFileSync(join(dir, temporary), "utf8"), "complete");
    writeJournal(journal, { ...thisProcess(), started: "1" }, plan);
    assert.deepEqual(await recover(dir), [{ journal, outcome: "finished" }]);
    assert.equal(readFileSync(join(dir, "other.gguf"), "utf8"), "complete");
  });

  test("a dry run leaves them, and an interrupted change", async () => {
    const { dir, path } = await scene();
    const [temporary, other] = [named(endedTag()), named(endedTag())];
    for (const name of [temporary, other]) writeFileSync(join(dir, name), "complete");
    const inode = String(lstatSync(join(dir, temporary)).ino);
    const outputs = [{ temporary, inode, target: "other.gguf", backup: null }];
    writeJournal(folderJournalPath(dir), { ...thisProcess(), started: "1" }, { kind: "rename", outputs });
    const state = () =>
      readdirSync(dir).map((name) => {
        const { ino, mtimeMs } = lstatSync(join(dir, name));
        return [name, ino, mtimeMs];
      });
    const before = state();
    const out = join(dir, "new.gguf");
    for (const [command, ...args] of [
      ["quantize", path, out, "--type", "Q8_0"],
      ["extract", path, "t1", "-o", out],
      ["remove", path, "t1"],
      ["rename", path, "t1", "t9"],
      ["convert", path, out, "--byte-order", "big"],
      ["split", path, join(dir, "part"), "--max-tensors", "2"],
      ["set", path, "general.name", "x"],
    ] as const) {
      const { status, stderr } = await run([command, ...args, "--dry-run"]);
      assert.deepEqual([status, stderr], [0, ""]);
      assert.deepEqual(state(), before, command);
    }
    assert.deepEqual(await recover(dir), [
      { journal: folderJournalPath(dir), outcome: "finished" },
      { temporary: join(dir, other), outcome: "removed" },
    ]);
  });

  test("the command line says what it removed", async () => {
    const { dir, path } = await scene();
    const temporary = named(endedTag());
    writeFileSync(join(dir, temporary), "part");
    const bin = join(projectRoot, "dist", "cli", "main.js");
    const { stdout } = runNode([bin, "recover", path]);
    const expected = /no change was interrupted\n.*\.tmp: removed: a command that was killed had left it\n$/;
    assert.match(stdout, expected);
    assert.deepEqual(readdirSync(dir), ["model.gguf"]);
  });
});

test("a journal of a process whose number is used again holds nobody up", { skip }, async () => {
  const { path } = await scene();
  const journal = journalPath(path);
  writeJournal(journal, { ...thisProcess(), started: "1" });
  assert.deepEqual(await recover(path), [{ journal, outcome: "nothing" }]);
  writeJournal(journal, thisProcess());
  await assert.rejects(recover(path), { code: "ERR_GGUF_CHANGED", message: /is being changed by process/ });
  rmSync(journal);
});

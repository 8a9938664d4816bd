/**
 * Processes that are killed while they write: whatever is there under a name is an old file or a new one, and recover()
 * leaves a model that is either the old one or the new one. GGUF_NATIVE_KILLS is the number of kills at random moments.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import {
  convertModel,
  GgufWriter,
  mergeModel,
  openSync,
  quantizeModel,
  recover,
  setMetadata,
  splitModel,
} from "gguf-native";
import { CHECKPOINTS, writeCheckpoint } from "../support/checkpoints";
import { childProgram, outcomeOf, runNode, start } from "../support/child";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import type { WriteTask } from "../support/write-child";

const RANDOM_KILLS = Number(process.env.GGUF_NATIVE_KILLS ?? 24);
const FIRST_CHANGES = Math.ceil(RANDOM_KILLS / 6);
const root = temporaryFolder();
const random = new Random(7);

type Work = WriteTask["work"];
type Files = Record<string, Buffer>;

interface Scene {
  work: Work;
  /** The model that is changed or made. */
  path: string;
  /** What is read, if it is not that. */
  input?: string;
  output: string;
  before: Files;
  after: Files;
  folder: string;
}

const OLD = "old ".repeat(2500);
const NEW = "new ".repeat(2500);

/** The files of a folder that have a name of their own. */
function named(folder: string): Files {
  const names = readdirSync(folder).filter((name) => !/\.(tmp|old|journal|recovery)$/.test(name));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(folder, name))]));
}

/** A folder with a model, and what the work makes of it. */
async function sceneOf(work: Work): Promise<Scene> {
  const folder = mkdtempSync(join(root, "scene-"));
  const writer = new GgufWriter().set("general.architecture", "test").set("test.block_count", 1);
  writer.set("general.description", OLD);
  for (let i = 0; i < 12; i++) {
    writer.addTensor(`t${i}.weight`, "F32", [256, 16], new Float32Array(4096).fill(i));
  }
  const whole = join(folder, "m.gguf");
  await writer.write(whole);
  const done = (scene: Partial<Scene>, make: () => Promise<unknown>) =>
    finish({ work, folder, path: "m.gguf", output: "m.gguf", ...scene }, make);
  if (work.startsWith("set")) {
    const changes = work === "set one number" ? { "test.block_count": 2 } : { "general.description": NEW };
    const inPlace = work === "set in place" || undefined;
    return done({ output: "" }, async () => {
      const result = await setMetadata(whole, changes, { inPlace });
      assert.equal(result.inPlace, work !== "set");
    });
  }
  if (work === "quantize") return done({}, () => quantizeModel(whole, whole, { type: "Q4_0" }));
  if (work === "rename") {
    writeFileSync(join(folder, "new.gguf"), readFileSync(whole));
    return done({ input: "m.gguf", path: "new.gguf", output: "new.gguf" }, async () => {
      using file = openSync(whole);
      const writer = GgufWriter.from(file).renameTensors({ "t0.weight": "first.weight" });
      await writer.write(join(folder, "new.gguf"));
    });
  }
  if (work === "split new") {
    return done({ output: "n" }, () => splitModel(whole, join(folder, "n"), { maxTensors: 4 }));
  }
  if (work === "convert") {
    const input = writeCheckpoint(root, CHECKPOINTS[0] as (typeof CHECKPOINTS)[number]);
    return done({ input }, () => convertModel(input, whole, { type: "q8_0" }));
  }
  const [first] = (await splitModel(whole, join(folder, "m"), { maxTensors: 5 })) as [string];
  const path = first.slice(folder.length + 1);
  // What is replaced differs from what replaces it.
  if (work === "merge") return done({ path }, () => mergeModel(first, whole));
  return done({ path, output: "m" }, () => splitModel(first, join(folder, "m"), { maxTensors: 4 }));
}

async function finish(scene: Omit<Scene, "before" | "after">, work: () => Promise<unknown>): Promise<Scene> {
  const { folder } = scene;
  if (scene.work === "merge") {
    await setMetadata(join(folder, "m.gguf"), { "general.description": "another file" });
  }
  const before = named(folder);
  await work();
  const after = named(folder);
  assert.notDeepEqual(before, after);
  if (scene.work !== "split new") assert.deepEqual(Object.keys(before), Object.keys(after));
  return { ...scene, before, after };
}

/** A new folder with the files as they were before. */
function prepared({ before }: Scene): string {
  const folder = mkdtempSync(join(root, "run-"));
  for (const [name, bytes] of Object.entries(before)) writeFileSync(join(folder, name), bytes);
  return folder;
}

/** Runs the work, and returns what it printed last; undefined if it was killed. */
async function run(
  { work, path, input, output }: Scene,
  folder: string,
  kill: { at?: WriteTask["killAt"]; during?: boolean; afterMs?: number },
): Promise<number | undefined> {
  const { at = 0, during = false, afterMs } = kill;
  const task: WriteTask = {
    ...{ work, text: NEW, killAt: at, during },
    ...{ path: resolve(folder, input ?? path), output: join(folder, output) },
  };
  const worker = start(process.execPath, [childProgram("write"), JSON.stringify(task)]);
  if (afterMs !== undefined) {
    worker.stdout.once("data", () => setTimeout(() => worker.kill("SIGKILL"), afterMs));
  }
  const lines = /^started\n(\d+)\n$/;
  const { status, signal, stdout, stderr } = await outcomeOf(worker, (stdout) => lines.test(stdout));
  if (signal === "SIGKILL") return undefined;
  assert.equal(status, 0, stderr);
  return Number(lines.exec(stdout)?.[1]);
}

/** After a kill: all is there, and recover() makes it one model. */
async function check({ path, before, after, work }: Scene, folder: string): Promise<void> {
  const found = named(folder);
  const isThere = (name: string) => name in found;
  assert.ok(Object.keys(before).every(isThere));
  const isWhole = (name: string, bytes: Buffer) =>
    [before[name], after[name]].some((each) => each !== undefined && bytes.equals(each));
  // In place, the header is torn until recover() has put it right: that is what the option says.
  if (work !== "set in place") {
    for (const [name, bytes] of Object.entries(found)) assert.ok(isWhole(name, bytes), `${name} is torn`);
  }
  await recover(work === "split new" ? folder : join(folder, path));
  const recovered = named(folder);
  const same = (files: Files) => isDeepStrictEqual(recovered, files);
  assert.ok(same(before) || same(after), "neither the old files nor the new ones");
  const left = readdirSync(folder).filter((name) => /\.(tmp|old|journal|recovery)$/.test(name));
  assert.deepEqual(left, [], "everything that the killed process left is gone");
  openSync(join(folder, path)).close();
}

const works: Work[] = [
  ...(["set", "set one number", "set in place", "split", "split new"] as const),
  ...(["merge", "quantize", "rename", "convert"] as const),
];
const skip = process.platform === "win32" && "Windows cannot kill a process in the middle of a call";
describe("killed at a call of the file system, before and during it", { skip }, () => {
  for (const work of works) {
    test(work, async () => {
      const scene = await sceneOf(work);
      const whole = prepared(scene);
      const count = (await run(scene, whole, {})) as number;
      assert.deepEqual(named(whole), scene.after);
      assert.ok(count > 2, `${count} calls`);
      let kills = 0;
      for (let at = 1; at <= count; at++) {
        const folder = prepared(scene);
        assert.equal(await run(scene, folder, { at, during: at % 2 === 0 }), undefined);
        await check(scene, folder);
        kills++;
      }
      assert.equal(kills, count);
    });
  }
});

test(`${RANDOM_KILLS} kills at random moments`, { skip }, async (t) => {
  const scenes = await Promise.all(works.map(sceneOf));
  const durations = new Map<Work, number>();
  for (const scene of scenes) {
    const start = performance.now();
    await run(scene, prepared(scene), {});
    durations.set(scene.work, performance.now() - start);
  }
  let killed = 0;
  for (let i = 0; i < RANDOM_KILLS; i++) {
    const scene = scenes[i % scenes.length] as Scene;
    const folder = prepared(scene);
    const afterMs = random.unit() * 60;
    if ((await run(scene, folder, { afterMs })) === undefined) killed++;
    await check(scene, folder);
  }
  t.diagnostic(`${killed} of ${RANDOM_KILLS} ended by the kill`);
  assert.ok(killed > 0);
});

test(`${FIRST_CHANGES} kills at the first changed byte or name`, { skip }, async () => {
  const scenes = await Promise.all(works.map(sceneOf));
  for (let i = 0; i < FIRST_CHANGES; i++) {
    const scene = scenes[i % scenes.length] as Scene;
    const folder = prepared(scene);
    assert.equal(await run(scene, folder, { at: "first change", during: true }), undefined);
    await check(scene, folder);
  }
});

test("the command line says that a change was interrupted, and recovers it", { skip }, async () => {
  const { bin } = await import("../support/cli.js");
  const command = (...args: string[]) => {
    const { status, stdout, stderr } = runNode([bin, ...args]);
    return { status, text: stdout + stderr };
  };
  for (const [work, outcome] of [
    ["split", /was finished/],
    ["set in place", /was taken back|was finished/],
  ] as const) {
    const scene = await sceneOf(work);
    const folder = prepared(scene);
    const isSplit = work === "split";
    const at = isSplit ? "second change" : "first change";
    assert.equal(await run(scene, folder, { at, during: !isSplit }), undefined);
    const path = join(folder, scene.path);
    if (work === "split") {
      // What a kill between two renames leaves.
      const { status, text } = command("inspect", path);
      assert.equal(status, 1);
      assert.match(text, /run 'gguf-native recover/);
    }
    const { status, text } = command("recover", work === "split" ? folder : path);
    assert.equal(status, 0, text);
    assert.match(text, outcome);
    assert.equal(command("verify", path).status, 0);
  }
  const scene = await sceneOf("set in place");
  const interrupted = prepared(scene);
  assert.equal(await run(scene, interrupted, { at: "first change", during: true }), undefined);
  const contents = () => readdirSync(interrupted).map((name) => [name, readFileSync(join(interrupted, name), "hex")]);
  const found = contents();
  const { status, text } = command("verify", join(interrupted, scene.path));
  assert.equal(status, 1, text);
  assert.match(text, /^bad .*/);
  assert.match(text, /a change of this model was interrupted: run 'gguf-native recover .*'/);
  assert.deepEqual(contents(), found, "verify changes nothing");

  const folder = prepared(scene);
  assert.equal(await run(scene, folder, { at: "first change", during: true }), undefined);
  const path = join(folder, scene.path);
  assert.equal(command("set", path, "test.block_count", "3").status, 0);
  using file = openSync(path);
  assert.equal(file.metadata.get("test.block_count"), 3);
});

test("what a kill left is settled by the next change of the same model", { skip }, async () => {
  for (const work of ["set in place", "split"] as const) {
    const scene = await sceneOf(work);
    const folder = prepared(scene);
    assert.equal(await run(scene, folder, { at: "first change", during: true }), undefined);
    const journals = () => readdirSync(folder).filter((name) => name.endsWith(".journal"));
    assert.equal(journals().length, 1);
    const path = join(folder, scene.path);
    await setMetadata(path, { "test.after": 1 });
    assert.deepEqual(journals(), []);
    using file = openSync(path);
    assert.equal(file.metadata.get("test.after"), 1);
    assert.equal(file.tensors.size, 12);
    assert.ok([OLD, NEW].includes(file.metadata.string("general.description") as string));
  }
});

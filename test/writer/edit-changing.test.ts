/** Files that change while they are changed, split or merged, and what is no regular file. */
import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgufError, type MetadataChange, mergeModel, setMetadata, splitModel } from "gguf-native";
import { succeeds } from "../support/child";
import { folder, metadata, tensors, written } from "../support/edited-model";
import { writeGguf } from "../support/gguf-writer";

describe("a file that changes while it is copied", () => {
  const content = readFileSync(written());
  const other = writeGguf({
    metadata,
    tensors: tensors.map((each) => ({ ...each, bytes: each.bytes.map(() => 9) })),
  });
  assert.equal(other.length, content.length);

  const replace = (path: string) => {
    writeFileSync(`${path}.new`, other);
    renameSync(`${path}.new`, path);
  };
  const changes: [name: string, change: (path: string) => void, message: RegExp][] = [
    ["replaced by another of the same size", replace, /another file has taken its place/],
    [
      "written to",
      (path) => {
        writeFileSync(path, other);
        utimesSync(path, 1, 1);
      },
      /it was modified on/,
    ],
    ["grown", (path) => appendFileSync(path, "x"), /its size was \d+ and is \d+/],
    ["cut off", (path) => truncateSync(path, 100), /its size was|it ends at/],
    ["removed", (path) => rmSync(path), /it was removed/],
  ];
  /** Changes that the system refuses. */
  const refused = process.platform === "win32" ? ["replaced by another of the same size", "removed"] : [];
  const skipOf = (changeName: string) => ({
    skip: refused.includes(changeName) && "Windows refuses it for files that are open",
  });
  type Work = (path: string, output: string, onProgress: () => void) => Promise<unknown>;
  const works: [name: string, work: Work][] = [
    [
      "setMetadata",
      (path, _, onProgress) => setMetadata(path, { "general.description": "x".repeat(500) }, { onProgress }),
    ],
    [
      "setMetadata to another file",
      (path, output, onProgress) => setMetadata(path, { "test.scale": 2 }, { output, onProgress }),
    ],
    ["splitModel", (path, output, onProgress) => splitModel(path, output, { maxTensors: 1, onProgress })],
    ["mergeModel", (path, output, onProgress) => mergeModel(path, output, { onProgress })],
  ];
  for (const [workName, work] of works) {
    for (const [changeName, change, message] of changes) {
      test(`${workName}: ${changeName}`, skipOf(changeName), async () => {
        const path = join(folder(), "model.gguf");
        writeFileSync(path, content);
        const output = join(folder(), "output");
        let after: Buffer | undefined;
        let calls = 0;
        const onProgress = () => {
          if (calls++ > 0) return;
          change(path);
          after = existsSync(path) ? readFileSync(path) : undefined;
        };
        await assert.rejects(work(path, output, onProgress), { code: "ERR_GGUF_CHANGED", path, message });
        assert.deepEqual(existsSync(path) ? readFileSync(path) : undefined, after);
        assert.deepEqual(readdirSync(join(path, "..")), after === undefined ? [] : ["model.gguf"]);
        assert.deepEqual(readdirSync(join(output, "..")), []);
      });
    }
  }

  for (const [changeName, change, message] of changes) {
    test(`setMetadata in place: ${changeName}`, skipOf(changeName), async () => {
      const path = join(folder(), "model.gguf");
      writeFileSync(path, content);
      function* onTheWay(): Generator<[string, MetadataChange]> {
        change(path);
        yield ["test.scale", 2];
      }
      await assert.rejects(setMetadata(path, onTheWay()), { code: "ERR_GGUF_CHANGED", path, message });
      if (change === replace) assert.deepEqual(readFileSync(path), Buffer.from(other));
    });
  }

  test("one of the shards that are merged", async () => {
    const dir = folder();
    const paths = await splitModel(written(), join(dir, "m"), { maxTensors: 1 });
    const before = readdirSync(dir);
    const onProgress = () => utimesSync(paths[1]!, 1, 1);
    await assert.rejects(mergeModel(paths[0]!, join(dir, "merged.gguf"), { onProgress }), {
      code: "ERR_GGUF_CHANGED",
      path: paths[1]!,
    });
    assert.deepEqual(readdirSync(dir), before);
  });
});

test("what is no regular file is refused at once", async () => {
  const dir = folder();
  const places: [path: string, code: string][] = [[dir, "EISDIR"]];
  if (process.platform !== "win32") {
    assert.ok(succeeds("mkfifo", [join(dir, "fifo")]));
    places.push([join(dir, "fifo"), "EINVAL"]);
  }
  for (const [path, code] of places) {
    const is = (error: GgufError) =>
      error.code === "ERR_GGUF_OPEN" && (error.cause as NodeJS.ErrnoException).code === code;
    await assert.rejects(setMetadata(path, { a: 1 }), is);
    await assert.rejects(mergeModel(path, join(dir, "x")), is);
  }
});

/** Files that are large, or no files: a right answer, in time and memory that the bytes really there account for. */
import assert from "node:assert/strict";
import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync as openFd,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgufError, type GgufFile, type OpenOptions, open, openSync, parse } from "gguf-native";
import { ByteWriter } from "../support/byte-writer";
import { succeeds } from "../support/child";
import { emulated } from "../support/emulated";
import { writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { temporaryFolder } from "../support/paths";
import { within } from "../support/within";

const folder = temporaryFolder();
const MiB = 2 ** 20;
const accesses = ["mmap", "read"] as const satisfies OpenOptions["access"][];

test("arrays nested as deep as is allowed, and one deeper", () => {
  const nested = (depth: number) => {
    const w = new ByteWriter().bytes(Buffer.from("GGUF")).u32(3).u64(0).u64(1).string("deep").u32(9);
    for (let i = 1; i < depth; i++) w.u32(9).u64(1);
    return w.u32(0).u64(1).u8(7).done();
  };
  let value: unknown = parse(nested(64)).metadata.get("deep");
  let depth = 0;
  for (; Array.isArray(value); depth++) value = value[0];
  assert.equal(depth, 63);
  assert.deepEqual(value, Uint8Array.of(7));
  assert.throws(() => parse(nested(65)), { code: "ERR_GGUF_INVALID" });
});

/** A file of a tebibyte that begins with `start` and takes next to nothing on disk; undefined where none can be made. */
function sparse(name: string, start: Uint8Array): string | undefined {
  const path = join(folder, name);
  const fd = openFd(path, "w");
  try {
    writeSync(fd, start);
    ftruncateSync(fd, 2 ** 40);
    return path;
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
}

describe("a sparse file of a tebibyte", () => {
  const [HALF, STRINGS] = [2 ** 39, 2 ** 35];
  const counts = (tensors: number, keys: number) =>
    new ByteWriter().bytes(Buffer.from("GGUF")).u32(3).u64(tensors).u64(keys);
  const cases: Record<string, [Uint8Array, GgufError["code"]]> = {
    "of nothing but zeros": [new Uint8Array(1), "ERR_GGUF_MAGIC"],
    "that claims 2^28 keys": [counts(0, 2 ** 28).done(), "ERR_GGUF_INVALID"],
    "that claims 2^28 tensors": [counts(2 ** 28, 0).done(), "ERR_GGUF_INVALID"],
    "that claims 2^32 keys": [counts(0, 2 ** 32).done(), "ERR_GGUF_INVALID"],
    "whose name has half a tebibyte": [counts(1, 0).u64(HALF).done(), "ERR_GGUF_INVALID"],
    "with 2^35 strings": [counts(0, 1).string("s").u32(9).u32(8).u64(STRINGS).done(), "ERR_GGUF_INVALID"],
  };
  for (const [name, [start, code]] of Object.entries(cases)) {
    test(name, (t) => {
      if (emulated) return t.skip("the emulator keeps a record of every page that is mapped");
      const path = sparse("sparse.gguf", start);
      if (path === undefined) return t.skip("this file system has no such files");
      for (const access of accesses) {
        const before = process.memoryUsage.rss();
        within(20, () => assert.throws(() => openSync(path, { access }), { code }));
        assert.ok(process.memoryUsage.rss() - before < 200 * MiB);
      }
    });
  }

  test("with an array of half a tebibyte, which is only passed over", needsAddon, (t) => {
    if (emulated) return t.skip("the emulator keeps a record of every page that is mapped");
    const w = counts(0, 1).string("numbers").u32(9).u32(0).u64(HALF);
    const path = sparse("sparse.gguf", w.done());
    if (path === undefined) return t.skip("this file system has no such files");
    using file: GgufFile = within(5, () => openSync(path));
    assert.equal(file.byteLength, 2 ** 40);
    const type = file.metadata.typeOf("numbers");
    assert.deepEqual(type, { type: "array", elementType: "uint8", length: HALF });
    assert.throws(() => file.metadata.get("numbers"), { code: "ERR_GGUF_OUT_OF_MEMORY", path });
    // Without a mapping all of the header has to be in memory, for which it is too large: that is known before.
    const before = process.memoryUsage.rss();
    assert.throws(() => openSync(path, { access: "read" }), { code: "ERR_GGUF_INVALID", path });
    assert.ok(process.memoryUsage.rss() - before < 100 * MiB);
  });
});

const posix = process.platform !== "win32";

/** ERR_GGUF_OPEN that says `what`, at once, from every way to open. */
async function isNoFile(path: string, what: RegExp, code?: string): Promise<void> {
  const is = (error: unknown) => {
    const { message, cause } = error as GgufError;
    assert.equal((error as GgufError).code, "ERR_GGUF_OPEN", message);
    assert.match(message, what);
    if (code !== undefined) assert.equal((cause as NodeJS.ErrnoException).code, code);
    return true;
  };
  for (const access of accesses) {
    within(5, () => assert.throws(() => openSync(path, { access }), is));
    await assert.rejects(open(path, { access }), is);
  }
}

describe("files that are not regular", { skip: !posix && "Windows has none of these" }, () => {
  test("a FIFO without a writer", () => {
    const path = join(folder, "fifo");
    assert.ok(succeeds("mkfifo", [path]));
    return isNoFile(path, /it is a FIFO/);
  });
  test("a directory, which to open is a model of safetensors", async () => {
    assert.throws(() => openSync(folder), { code: "ERR_GGUF_OPEN", message: /it is a directory/ });
    await assert.rejects(open(folder), { code: "ERR_GGUF_OPEN", path: join(folder, "model.safetensors") });
  });
  for (const device of ["/dev/zero", "/dev/null", "/dev/tty"]) {
    test(device, (t) => {
      if (!existsSync(device)) return t.skip(`there is no ${device}`);
      return isNoFile(device, device === "/dev/tty" ? /./ : /it is a character device/);
    });
  }
  test("a socket", async () => {
    const path = join(folder, "socket");
    const server = createServer().listen(path);
    await new Promise((resolve) => server.once("listening", resolve));
    await isNoFile(path, /./, "ENXIO");
    server.close();
  });
});

const noProc = (process.platform === "win32" || !existsSync("/proc/self/maps")) && "there is no /proc here";
describe("/proc", { skip: noProc }, () => {
  test("a file that reports no size is read, and is not a GGUF file", async () => {
    for (const path of ["/proc/self/maps", "/proc/self/status", "/proc/self/cmdline"]) {
      for (const access of accesses) assert.throws(() => openSync(path, { access }), { code: "ERR_GGUF_MAGIC" });
      await assert.rejects(open(path), { code: "ERR_GGUF_MAGIC" });
    }
  });
  test("the memory of the process, which cannot be read from its start", () => {
    assert.throws(
      () => openSync("/proc/self/mem"),
      (error) => /^ERR_GGUF_/.test((error as GgufError).code),
    );
  });
  test("a file descriptor of this process", () => {
    const path = join(folder, "tiny.gguf");
    writeFileSync(path, writeGguf());
    const fd = openFd(path, "r");
    openSync(`/proc/self/fd/${fd}`).close();
    closeSync(fd);
  });
});

describe("paths", () => {
  test("no permission", async (t) => {
    if (!posix) return t.skip("Windows has no such permissions");
    const path = join(folder, "secret.gguf");
    writeFileSync(path, writeGguf(), { mode: 0 });
    const isRoot = process.geteuid!() === 0;
    // Root may read everything: somebody else asks, who gets through the folder at least.
    if (isRoot) chmodSync(folder, 0o755);
    try {
      if (isRoot) process.seteuid!(65534);
      await isNoFile(path, /permission denied/i, "EACCES");
    } finally {
      if (isRoot) process.seteuid!(0);
    }
  });

  test("as long as the system takes them, and longer", async () => {
    let deep = folder;
    while (deep.length < 3800) {
      deep = join(deep, "d".repeat(Math.min(200, 3900 - deep.length)));
    }
    mkdirSync(deep, { recursive: true });
    const path = join(deep, "模型 é.gguf");
    writeFileSync(path, writeGguf());
    for (const access of accesses) openSync(path, { access }).close();
    (await open(path)).close();
    if (!posix) return;
    await isNoFile(join(folder, "x".repeat(300)), /too long/i, "ENAMETOOLONG");
    await isNoFile(`${deep}/${"y/".repeat(200)}z`, /too long/i, "ENAMETOOLONG");
    await isNoFile(`/${"z".repeat(10 * MiB)}`, /./, "ENAMETOOLONG");
  });
});

test("the files of this process are as few as before", { skip: noProc }, () => {
  // Everything above that failed must have closed what it had opened.
  const left = readFileSync("/proc/self/maps", "utf8")
    .split("\n")
    .filter((line) => line.includes(folder));
  assert.deepEqual(left, []);
});

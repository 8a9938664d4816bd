/** Two copies of the package in one process, and realms of their own, over the same addon. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { type Context, compileFunction, createContext, runInContext } from "node:vm";
import * as gguf from "gguf-native";
import { goldenPath } from "../support/golden";
import { isWasm, needsAddon } from "../support/needs-addon";
import { projectRoot } from "../support/paths";

type Package = typeof gguf;

/** Another copy, whose modules are evaluated in `realm`; the addon and Node's modules are the process's. */
function load(realm: Context): Package {
  const modules = new Map<string, { exports: unknown }>();
  const loadFile = (path: string): unknown => {
    if (!path.startsWith(join(projectRoot, "dist")) || path.endsWith(".node")) return require(path);
    const known = modules.get(path);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    modules.set(path, module);
    const { resolve } = createRequire(path);
    // Without a wrapper around it, as Node does it: places in the file stay the same, which coverage is counted by.
    const names = ["exports", "require", "module", "__filename", "__dirname"];
    const code = readFileSync(path, "utf8");
    const run = compileFunction(code, names, { filename: path, parsingContext: realm });
    run(module.exports, (name: string) => loadFile(resolve(name)), module, path, dirname(path));
    return module.exports;
  };
  return loadFile(join(projectRoot, "dist", "index.js")) as Package;
}

/** What a test runner gives its realm of the process's; other classes are the realm's own. */
const given = { process, Buffer, URL, AbortController, AbortSignal, TextDecoder, TextEncoder };
const realm = createContext({ ...given, console, structuredClone, setTimeout, clearTimeout });
const inRealm = <T>(code: string): T => runInContext(code, realm) as T;
const other = isWasm ? gguf : load(realm);

const thrownBy = (run: () => unknown): unknown => {
  try {
    run();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
};
const open = (copy: Package) => copy.openSync("/no/such/file.gguf");

describe("a copy in a realm of its own", needsAddon, () => {
  test("is another copy, over the same addon", () => {
    assert.notEqual(other.GgufError, gguf.GgufError);
    assert.notEqual(inRealm("Float32Array"), Float32Array);
  });
  test("gives arrays of that realm, and this one those of this realm", async () => {
    const blocks = new Uint8Array(64);
    const expectations = [
      [gguf, Float32Array, Uint8Array, Array],
      [other, inRealm("Float32Array"), inRealm("Uint8Array"), inRealm("Array")],
    ] as [Package, typeof Float32Array, typeof Uint8Array, typeof Array][];
    for (const [copy, Floats, Bytes, List] of expectations) {
      using file = copy.openSync(goldenPath);
      const tensor = file.tensor("Q4_0.gaussian");
      const results = [
        ...[copy.dequantizeSync("F32", blocks), await copy.dequantize("F32", blocks), copy.allocate(1)],
        ...[tensor.dequantizeSync(), await tensor.dequantize(), tensor.rowsSync([0])],
      ];
      for (const result of results) assert.equal(Object.getPrototypeOf(result), Floats.prototype);
      for (const bytes of [tensor.bytes(), await tensor.read(), tensor.nameBytes()]) {
        assert.equal(Object.getPrototypeOf(bytes), Bytes.prototype);
      }
      assert.ok(tensor.shape instanceof List);
      assert.ok(copy.cpu().available instanceof List);
    }
  });
  test("throws errors of that realm", async () => {
    const [OwnError, OwnTypeError] = [inRealm<ErrorConstructor>("Error"), inRealm<ErrorConstructor>("TypeError")];
    const error = thrownBy(() => open(other)) as gguf.GgufError;
    assert.ok(error instanceof OwnError);
    assert.ok(error.cause instanceof OwnError);
    assert.equal((error.cause as NodeJS.ErrnoException).code, "ENOENT");
    assert.ok(thrownBy(() => other.openSync(5 as never)) instanceof OwnTypeError);
    const rejected = await other.open("/no/such/file.gguf").catch((reason: unknown) => reason);
    assert.equal((rejected as object).constructor, other.GgufError);
    assert.ok(!(thrownBy(() => open(gguf)) instanceof OwnError));
  });
  test("and this one make their own errors, and know each other's", () => {
    for (const [copy, another] of [
      [gguf, other],
      [other, gguf],
    ] as const) {
      const error = thrownBy(() => open(copy)) as gguf.GgufError;
      assert.equal(error.constructor, copy.GgufError);
      assert.equal(error.code, "ERR_GGUF_OPEN");
      assert.ok(error instanceof copy.GgufError && error instanceof another.GgufError);
      class Mine extends another.GgufError {}
      assert.ok(!(error instanceof Mine));
      assert.ok(new Mine("ERR_GGUF_OPEN", "x") instanceof Mine);
    }
    for (const value of [new Error("x"), {}, null, undefined, "x"]) assert.ok(!(value instanceof gguf.GgufError));
  });
});

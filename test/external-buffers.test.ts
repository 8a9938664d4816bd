/**
 * A runtime that forbids external ArrayBuffers, as Electron does. Here it is the addon linked once more, with a function
 * that refuses to make one in the place of Node's.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { projectRoot, temporaryFolder } from "./support/paths";

const objects = join(projectRoot, "build", "Release", "obj.target", "gguf_native");

function reasonToSkip(): string | false {
  if (process.platform !== "linux") return "linking the addon again works on Linux only";
  const isCompiledHere = existsSync(objects) && process.env.GGUF_NATIVE_ADDON === undefined;
  return isCompiledHere ? false : "the addon was not compiled here";
}

/** Links the addon with a source more; where it is. */
function linkAddonWith(source: string): string {
  const addon = join(temporaryFolder(), "gguf_native.node");
  const compiled = readdirSync(objects, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".o"),
  );
  const [compiler, ...first] = (process.env.CXX ?? "c++").split(" ") as [string, ...string[]]; // or "ccache g++"
  const { status, stderr } = spawnSync(
    compiler,
    [
      ...[...first, "-shared", "-fPIC", "-I", require("node-api-headers").include_dir, source],
      ...compiled.map((name) => join(objects, name)),
      `-Wl,--version-script=${join(projectRoot, "native", "binding", "exports.map")}`,
      ...["-o", addon],
    ],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  return addon;
}

test("if external buffers are forbidden, views and results are copies", { skip: reasonToSkip() }, () => {
  const source = join(projectRoot, "test", "native", "refuse_external_buffers.cc");
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["--expose-gc", join(__dirname, "support", "copies-child.js")],
    { encoding: "utf8", env: { ...process.env, GGUF_NATIVE_ADDON: linkAddonWith(source) } },
  );
  assert.equal(status, 0, stderr);
  assert.equal(stdout, "all copies\n");
});

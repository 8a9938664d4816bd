/** The addon linked once more, with functions of a test in the place of those that it calls. */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runSync } from "./child";
import { projectRoot, temporaryFolder } from "./paths";

const objects = join(projectRoot, "build", "Release", "obj.target", "gguf_native");

/** Why it cannot be linked here, for the option `skip` of a test; false where it can. */
export function reasonNotToLink(): string | false {
  if (process.platform !== "linux") return "linking the addon again works on Linux only";
  const isCompiledHere = existsSync(objects) && process.env.GGUF_NATIVE_ADDON === undefined;
  return isCompiledHere ? false : "the addon was not compiled here";
}

/** Links the addon with a source of test/native more, and options of the linker; where it is. */
export function linkAddonWith(source: string, ...options: string[]): string {
  const addon = join(temporaryFolder(), "gguf_native.node");
  const compiled = readdirSync(objects, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".o"));
  const [compiler, ...first] = (process.env.CXX ?? "c++").split(" ") as [string, ...string[]]; // or "ccache g++"
  const { status, stderr } = runSync(compiler, [
    ...[...first, "-std=c++17", "-Wall", "-Wextra", "-shared", "-fPIC"],
    ...["-I", require("node-api-headers").include_dir, join(projectRoot, "test", "native", source)],
    ...compiled.map((name) => join(objects, name)),
    `-Wl,--version-script=${join(projectRoot, "native", "binding", "exports.map")}`,
    ...[...options, "-o", addon],
  ]);
  assert.equal(status, 0, stderr);
  return addon;
}

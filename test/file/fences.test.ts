/**
 * Orders of memory that an ordinary run cannot miss: x86 keeps them by itself, and an emulator of ARM runs on x86. So the
 * code that a compiler makes for ARM is read instead.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runSync, succeeds } from "../support/child";
import { projectRoot } from "../support/paths";

const compiler = "aarch64-linux-gnu-g++";
const skip = !succeeds(compiler) && `${compiler} is not installed`;

test("what was lost of a mapping is asked for after the mapping was read", { skip }, () => {
  const { status, stderr, stdout } = runSync(
    compiler,
    ["-std=c++17", "-O2", "-S", "-I", "native", "native/core/fault_guard_posix.cc", "-o", "-"],
    { cwd: projectRoot },
  );
  assert.equal(status, 0, stderr);
  const [, body] = /^_ZN4gguf17first_zeroed_byte\w+:\n([\s\S]*?)\n\tret$/m.exec(stdout) as RegExpExecArray;
  assert.match(body as string, /^\tdmb\tish(ld)?\n[\s\S]*^\tld/m, "a fence, and then the load");
});

/**
 * Memory, threads and Node's pool, each of which fails at every step of what the addon does: an ordinary error, no
 * crash, no promise that never settles, and everything works afterwards. In processes of their own.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { childProgram, outcomeOfLine } from "../support/child";
import { linkAddonWith, reasonNotToLink } from "../support/linked-addon";
import { temporaryFolder } from "../support/paths";

const skip = reasonNotToLink();
// With the C++ library in it, whose strings and threads then take the memory that fails.
const addon = skip ? "" : linkAddonWith("failing_system.cc", "-static-libstdc++", "-static-libgcc");

describe("an allocation that fails", { skip }, () => {
  const parts = [
    "memory",
    "memory and pages",
    "memory of other threads",
    "queue",
    "leaks",
    "scratch that is large",
    "workers",
  ];
  for (const part of parts) {
    test(part, async () => {
      const outcome = await outcomeOfLine(["--expose-gc", childProgram("out-of-memory"), part, temporaryFolder()], {
        env: { ...process.env, GGUF_NATIVE_ADDON: addon, GGUF_NATIVE_WASM: "" },
      });
      assert.deepEqual(outcome, { status: 0, signal: null, stderr: "", stdout: "done\n" });
    });
  }
});

/**
 * A runtime that forbids external ArrayBuffers, as Electron does. Here it is the addon linked once more, with a function
 * that refuses to make one in the place of Node's.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { childProgram, outcomeOfLine } from "../support/child";
import { linkAddonWith, reasonNotToLink } from "../support/linked-addon";

describe("if external buffers are forbidden, views and results are copies", {
  skip: reasonNotToLink(),
}, () => {
  const addon = linkAddonWith("refuse_external_buffers.cc");
  for (const when of ["never", "now", "later"]) {
    test(`and the runtime calls finalizers ${when}`, async () => {
      const { signal, stderr, stdout } = await outcomeOfLine(["--expose-gc", childProgram("copies")], {
        env: { ...process.env, GGUF_NATIVE_ADDON: addon, FINALIZE: when },
      });
      assert.deepEqual([signal, stdout], [null, "all copies\n"], stderr);
    });
  }
});

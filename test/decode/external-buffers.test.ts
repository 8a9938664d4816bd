/**
 * A runtime that forbids external ArrayBuffers, as Electron does. Here it is the addon linked once more, with a function
 * that refuses to make one in the place of Node's.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { linkAddonWith, reasonNotToLink } from "../support/linked-addon";

test("if external buffers are forbidden, views and results are copies", { skip: reasonNotToLink() }, () => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["--expose-gc", join(__dirname, "..", "support", "copies-child.js")],
    {
      encoding: "utf8",
      env: { ...process.env, GGUF_NATIVE_ADDON: linkAddonWith("refuse_external_buffers.cc") },
    },
  );
  assert.equal(status, 0, stderr);
  assert.equal(stdout, "all copies\n");
});

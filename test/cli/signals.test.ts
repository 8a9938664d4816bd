/** Signals end every command at once, also while JavaScript is busy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CHECKPOINTS, writeCheckpoint } from "../support/checkpoints";
import { start } from "../support/child";
import { at, bin, folder, leftovers } from "../support/cli";
import { emulated } from "../support/emulated";
import { projectRoot } from "../support/paths";
import { sampleModel } from "../support/sample-model";

const skip =
  (process.platform === "win32" && "Windows has no such signals") || (emulated && "no signals for the child");
const model = sampleModel();
writeFileSync(at("model.gguf"), model);
writeFileSync(at("part-00001-of-00001.gguf"), model);
const checkpoint = writeCheckpoint(folder, CHECKPOINTS[0]!);

/** Reading a header takes a minute: as any long stretch of JavaScript, of a hostile file or of a long text. */
const busy = at("busy.cjs");
writeFileSync(
  busy,
  `const { native } = require(${JSON.stringify(join(projectRoot, "dist", "backend", "native.js"))});
  for (const name of ["parse", "open"]) {
    const call = native[name];
    native[name] = (...args) => {
      const result = call(...args);
      require("node:fs").writeSync(2, "busy");
      for (const end = Date.now() + 60_000; Date.now() < end; );
      return result;
    };
  }`,
);

const commands = [
  ["inspect", "model.gguf"],
  ["get", "model.gguf", "general.name"],
  ["verify", "model.gguf"],
  ["hash", "model.gguf"],
  ["diff", "model.gguf", "model.gguf"],
  ["stats", "model.gguf"],
  ["tokens", "model.gguf", "text"],
  ["view", "model.gguf", "--no-open"],
  ["dequantize", "model.gguf", "*", "-o", "out.safetensors"],
  ["quantize", "model.gguf", "out.gguf", "--type", "Q8_0"],
  ["convert", checkpoint, "out.gguf"],
  ["convert", "model.gguf", "out.gguf", "--byte-order", "big"],
  ["extract", "model.gguf", "*", "-o", "out.gguf"],
  ["remove", "model.gguf", "output.weight", "-o", "out.gguf"],
  ["rename", "model.gguf", "output.weight", "x", "-o", "out.gguf"],
  ["set", "model.gguf", "general.name", "Other"],
  ["split", "model.gguf", "parts/new", "--max-tensors", "4"],
  ["merge", "part-00001-of-00001.gguf", "out.gguf"],
];

const cases = commands.flatMap((args) =>
  args[0] === "quantize"
    ? (["SIGINT", "SIGTERM"] as const).map((signal) => [signal, args] as const)
    : [["SIGINT", args] as const],
);
for (const [signal, args] of cases) {
  test(`${signal} while ${args[0]} is busy`, { skip, timeout: 30_000 }, async (context) => {
    mkdirSync(at("parts"), { recursive: true });
    const before = readdirSync(folder, { recursive: true });
    const child = start(process.execPath, ["--require", busy, bin, ...args], { cwd: folder });
    context.after(() => child.kill("SIGKILL"));
    const ended = once(child, "exit");
    const [said] = await once(child.stderr, "data");
    assert.equal(String(said), "busy");
    child.kill(signal);
    assert.deepEqual(await ended, [null, signal]);
    assert.deepEqual(leftovers(), []);
    assert.deepEqual(readdirSync(folder, { recursive: true }), before);
  });
}

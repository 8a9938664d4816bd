/** The permission model of Node.js: reading works with narrow permissions, and what is forbidden says which flag allows it. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { openSync } from "gguf-native";
import { runNode } from "../support/child";
import { goldenPath } from "../support/golden";
import { projectRoot, temporaryFolder } from "../support/paths";
import { needsModule } from "../support/wasm";

const folder = temporaryFolder();
const model = join(folder, "model.gguf");
const secret = join(folder, "secret.gguf");
const script = join(folder, "script.cjs");
const outputs = join(folder, "outputs");
copyFileSync(goldenPath, model);
copyFileSync(goldenPath, secret);
mkdirSync(outputs);

const [major] = process.versions.node.split(".").map(Number);
const flag = (major as number) >= 24 ? "--permission" : "--experimental-permission";
/** The package, with what it is made of here. */
const package_ = ["dist", "build", "node_modules", "prebuilds", "package.json"].map((name) => join(projectRoot, name));
const addon = [process.env.GGUF_NATIVE_PREBUILD, process.env.GGUF_NATIVE_ADDON];
const readable = [...package_, ...addon.filter((path) => path !== undefined), script, model];

function node(args: string[], more: string[] = [], addons = ["--allow-addons"]) {
  const allowed = readable.map((path) => `--allow-fs-read=${path}`);
  const flags = [flag, "--no-warnings", ...addons, ...allowed, ...more];
  const { status, stdout, stderr } = runNode([...flags, ...args], {
    cwd: outputs,
    // An addon that is named is not replaced by WebAssembly.
    env: { ...process.env, ...(addons.length === 0 && { GGUF_NATIVE_ADDON: "" }) },
  });
  return { status, stdout, stderr };
}

/** What a script prints as JSON; `gguf` is the package, `fails` the error of a function. */
function evaluate(source: string, more?: string[], addons?: string[]): unknown {
  writeFileSync(
    script,
    `const gguf = require(${JSON.stringify(projectRoot)});
     const [model, secret, outputs] = ${JSON.stringify([model, secret, outputs])};
     const fails = async (run) => {
       try { await run(); } catch ({ name, code, message, path, cause }) {
         return { name, code, message, path, cause: cause && { ...cause } };
       }
       return "no error";
     };
     (async () => { ${source} })().then((value) => console.log(JSON.stringify(value)));`,
  );
  const { status, stdout, stderr } = node([script], more, addons);
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

describe("reading", () => {
  test("needs the package, the model and addons", () => {
    using file = openSync(model);
    const expected = Array.from(file.tensor("Q4_K.gaussian").dequantizeSync({ end: 256 }));
    const found = evaluate(`
      const file = gguf.openSync(model);
      const opened = await gguf.open(model, { access: "read" });
      const parts = [file, opened].map((each) => each.tensor("Q4_K.gaussian").dequantize({ end: 256 }));
      return (await Promise.all(parts)).map((part) => Array.from(part));`);
    assert.deepEqual(found, [expected, expected]);
  });

  test("without addons, WebAssembly reads the model, and no other file", needsModule, () => {
    const found = evaluate(
      `const tensor = gguf.openSync(model).tensor("Q4_K.gaussian");
       const { code, message } = await fails(() => gguf.openSync(secret));
       return [gguf.cpu().isa, (await tensor.dequantize()).length, code, /--allow-fs-read=/.test(message)];`,
      [],
      [],
    );
    assert.deepEqual(found, ["wasm", 2048, "ERR_GGUF_OPEN", true]);
  });

  const refused = {
    name: "GgufError",
    code: "ERR_GGUF_OPEN",
    message: `${secret}: cannot open the file: the permission model of Node.js forbids to read it: start it with --allow-fs-read=${secret}, too`,
    path: secret,
    cause: { code: "ERR_ACCESS_DENIED", permission: "FileSystemRead", resource: secret },
  };
  test("another file is refused, though the addon could read it", () => {
    const found = evaluate(`return [
      await fails(() => gguf.openSync(secret)),
      await fails(() => gguf.open(secret)),
      await fails(() => gguf.openSync(require("node:url").pathToFileURL(secret), { access: "read" })),
    ];`);
    assert.deepEqual(found, [refused, refused, refused]);
  });
  test("as is what a relative path leads to", () => {
    const found = evaluate(`
      const { code, cause } = await fails(() => gguf.openSync("../secret.gguf"));
      return [code, cause.resource, gguf.openSync("../model.gguf").tensors.size > 0];`);
    assert.deepEqual(found, ["ERR_GGUF_OPEN", secret, true]);
  });
  test("the flag that the message names helps", () => {
    const found = evaluate("return gguf.openSync(secret).tensors.size", [`--allow-fs-read=${secret}`]);
    assert.equal(typeof found, "number");
  });
});

test("writing is refused before anything is written", () => {
  const everything = ["--allow-fs-read=*", "--allow-fs-write=*"];
  const found = evaluate(
    `
    const writer = new gguf.GgufWriter().set("a", 1, "uint32");
    let bytes = 0;
    for await (const chunk of writer.chunks()) bytes += chunk.length;
    const errors = await Promise.all([
      fails(() => writer.write(outputs + "/w.gguf")),
      fails(() => gguf.setMetadata(model, { a: 1 })),
      fails(() => gguf.setMetadata(model, { a: 1 }, { inPlace: true })),
      fails(() => gguf.splitModel(model, outputs + "/s", { maxTensors: 50 })),
      fails(() => gguf.mergeModel(model, outputs + "/m.gguf")),
      fails(() => gguf.recover(outputs)),
    ]);
    return { bytes, errors: errors.map(({ code, message }) => [code, /start it without --permission/.test(message)]) };`,
    everything,
  );
  assert.deepEqual(found, { bytes: 64, errors: Array(6).fill(["ERR_GGUF_WRITE", true]) });
  assert.deepEqual(readdirSync(outputs), []);
});

describe("the command line", () => {
  const program = join(projectRoot, "dist", "cli", "main.js");
  test("reads what it may", () => {
    const { status, stdout, stderr } = node([program, "inspect", model]);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /architecture {2}golden/);
  });
  for (const [name, args, message] of [
    ["another file", ["inspect", secret], `--allow-fs-read=${secret}`],
    ["an output", ["dequantize", model, "Q4_K.gaussian", "-o", join(outputs, "x.npy")], "without --permission"],
    ["a folder", ["split", model, join(outputs, "x"), "--max-tensors", "9"], "without --permission"],
    ["a change", ["set", model, "a", "1"], "without --permission"],
  ] as const) {
    test(`says what to do for ${name}`, () => {
      const { status, stderr } = node([program, ...args]);
      assert.equal(status, 1);
      assert.match(stderr, /^gguf-native: [^\n]*\n$/);
      assert.ok(stderr.includes(message), stderr);
    });
  }
  test("verifies without looking for journals", () => {
    const { status, stdout } = node([program, "verify", model, "--json"], ["--allow-worker"]);
    const { files } = JSON.parse(stdout) as { files: { findings: { code?: string }[] }[] };
    assert.equal(status, 1); // the model holds NaN
    assert.ok(!files[0]?.findings.some(({ code }) => code !== undefined), stdout);
  });
});

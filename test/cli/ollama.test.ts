/** Models of Ollama: `ollama://NAME:TAG`. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { at, expectFailure, json, output, run } from "../support/cli";
import { sha256 } from "../support/model-facts";
import { sampleModel } from "../support/sample-model";

process.env.OLLAMA_MODELS = at("ollama");

const content = sampleModel();
const hex = sha256(content);
const weights = {
  mediaType: "application/vnd.ollama.image.model",
  digest: `sha256:${hex}`,
  size: content.length,
};
const template = { ...weights, mediaType: "application/vnd.ollama.image.template", size: 1 };

function write(place: string, data: string | Uint8Array): void {
  const path = join(at("ollama"), place);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, data);
}
const manifest = (place: string, layers: unknown): void =>
  write(`manifests/registry.ollama.ai/${place}`, JSON.stringify({ schemaVersion: 2, layers }));
write(`blobs/sha256-${hex}`, content);
manifest("library/sample/latest", [template, weights]);
manifest("library/sample/1b-q4", [weights]);
manifest("somebody/other.model/v1", [weights]);
write("manifests/hub.example/o/n/t", JSON.stringify({ layers: [weights] }));
writeFileSync(at("model.gguf"), content);

describe("ollama://", () => {
  test("names are looked up as Ollama does", async () => {
    for (const name of ["sample", "sample:1b-q4", "somebody/other.model:v1", "hub.example/o/n:t"]) {
      const { path, tensorCount } = await json(["inspect", `ollama://${name}`]);
      assert.deepEqual([path, tensorCount], [`ollama://${name}`, 20]);
    }
  });
  test("every command that reads models takes them", async () => {
    const name = "ollama://sample";
    assert.equal(await output("diff", name, "model.gguf"), "no differences\n");
    assert.equal(await output("get", name, "general.architecture"), "llama\n");
    assert.match(await output("verify", name), /^ok /);
    const found = (await json(["hash", name])).files[0].sha256;
    assert.equal(found, (await json("hash model.gguf")).files[0].sha256);
    for (const args of [
      ["stats", name, "output_norm.weight"],
      ["show", name, "output_norm.weight"],
      ["tokens", name],
    ])
      assert.equal((await run(args)).status, 0);
    await output("dequantize", name, "output_norm.weight", "-o", "norm.npy");
    await output("extract", name, "output_norm.weight", "-o", "norm.gguf");
    await output("quantize", name, "small.gguf", "--type", "Q8_0", "--allow-requantize");
  });
  test("nothing replaces them", async () => {
    await expectFailure("remove ollama://sample *norm*", 2, /missing --output/);
    for (const args of [
      ["set", "ollama://sample", "a", "b"],
      ["split", "ollama://sample", "--max-tensors", "1"],
    ])
      await expectFailure(args, 2, /files on this machine only: not 'ollama:\/\/sample'/);
    await expectFailure("remove ollama://sample *norm* -o /dev/null/x", 1, /./);
    assert.ok(readFileSync(at(`ollama/blobs/sha256-${hex}`)).equals(content));
  });
  test("names that are none, or not there", async () => {
    for (const name of ["", "..", "../../etc:passwd", "a/b/c/d", "a:..", "a/../b", "a:b:c", ".hidden", "a\\..\\b"])
      await expectFailure(["inspect", `ollama://${name}`], 2, /must be of the form ollama:/);
    await expectFailure("inspect ollama://nothing:7b", 1, /Ollama does not have ollama:\/\/nothing:7b/);
  });
  test("manifests that say what they may not are refused", async () => {
    for (const [layers, message] of [
      [[{ ...weights, digest: "sha256:../../../../etc/passwd" }], /no SHA-256/],
      [[{ ...weights, digest: `sha256:${"a".repeat(63)}` }], /no SHA-256/],
      [[{ ...weights, digest: hex }], /no SHA-256/],
      [[{ ...weights, digest: [1] }], /no SHA-256/],
      [[{ ...weights, size: "1" }], /without its size/],
      [[{ ...weights, size: content.length - 1 }], /is not the file of/],
      [[{ ...weights, digest: `sha256:${"0".repeat(64)}` }], /names a blob that is not in/],
      [[weights, weights], /names 2 files of weights/],
      [[template, null, 1], /names 0 files of weights/],
      ["x", /names 0 files of weights/],
    ] as const) {
      manifest("library/bad/latest", layers);
      await expectFailure("inspect ollama://bad", 1, message);
    }
    for (const [text, message] of [
      ["{", /is no JSON/],
      ["null", /names 0 files/],
      [" ".repeat(2 << 20), /longer than 1048576 bytes/],
    ] as const) {
      write("manifests/registry.ollama.ai/library/bad/latest", text);
      await expectFailure("inspect ollama://bad", 1, message);
    }
    rmSync(join(at("ollama"), "manifests/registry.ollama.ai/library/bad"), { recursive: true });
    mkdirSync(join(at("ollama"), "manifests/registry.ollama.ai/library/bad/latest"), { recursive: true });
    await expectFailure("inspect ollama://bad", 1, /directory|regular file/);
  });
});

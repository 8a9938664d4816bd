/** Commands that read from servers, against a server of this process. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parse } from "gguf-native";
import { readNpy, readSafetensors } from "./support/array-files";
import { at, expectFailure, expectTidy, floats, type Outcome, runMeanwhile } from "./support/cli";
import { i32, u16, writeGguf } from "./support/gguf-writer";
import { answerRange, rangeOf, rangesOf, serve } from "./support/range-server";
import { sampleModel } from "./support/sample-model";

const content = sampleModel();
const model = parse(content);
const name = "blk.0.attn_k.weight";

async function succeed(...args: string[]): Promise<Outcome> {
  const outcome = await runMeanwhile(args);
  assert.deepEqual([outcome.status, outcome.stderr], [0, ""]);
  return outcome;
}

async function fail(status: number, message: RegExp, ...args: string[]): Promise<void> {
  const outcome = await runMeanwhile(args);
  assert.deepEqual([outcome.status, outcome.stdout], [status, ""]);
  assert.match(outcome.stderr, /^gguf-native: [^\n]*\n$/);
  assert.match(outcome.stderr, message);
}

describe("inspect", () => {
  test("shows what a file of that name would, and fetches the header only", async () => {
    const padded = new Uint8Array(content.length + 2 ** 24);
    padded.set(content);
    const { url, requests } = await serve(rangesOf(padded));
    const { stdout } = await succeed("inspect", url);
    expectTidy(stdout);
    assert.match(stdout, /^model\.gguf\n {2}architecture +llama\n/);
    assert.match(stdout, /\n {2}parameters +7\.08 M in 20 tensors\n/);
    assert.equal(requests.length, 1);
    const { tensors } = JSON.parse((await succeed("inspect", "--json", url, "--filter", "*attn_k*")).stdout);
    assert.deepEqual(tensors[0], JSON.parse(JSON.stringify(model.tensor(name))));
  });
  test("a file that is cut off is shown; the exit code is 1", async () => {
    const { url } = await serve(rangesOf(content.subarray(0, 1_000_000)));
    const { status, stdout, stderr } = await runMeanwhile(["inspect", url]);
    assert.equal(status, 1);
    assert.match(stdout, /blk\.1\.ffn_down\.weight/);
    assert.match(stderr, /^gguf-native: http:\S+: tensor .* runs past the end.*\n$/);
  });
  test("the query of a URL, which may be a signature, is not shown", async () => {
    const { url } = await serve(rangesOf(content));
    const { stdout } = await succeed("inspect", `${url}?signature=secret`);
    assert.match(stdout, /^model\.gguf\n/);
    const { stdout: json } = await succeed("inspect", `${url}?signature=secret`, "--json");
    assert.equal(JSON.parse(json).path, url);
    assert.doesNotMatch(stdout + json, /secret/);
    await fail(
      1,
      /^(?!.*secret).*no tensor's name/,
      "dequantize",
      `${url}?signature=secret`,
      "x*",
      "-o",
      "x.npy",
    );
  });
  test("one file of a split model alone", async () => {
    const shard = writeGguf({
      metadata: [
        ["split.no", u16(0)],
        ["split.count", u16(2)],
        ["split.tensors.count", i32(2)],
      ],
      tensors: [floats("t", [1])],
    });
    const { url } = await serve(rangesOf(shard));
    await fail(1, /alone with /, "inspect", url);
    assert.match((await succeed("inspect", "--no-splits", url)).stdout, /\bt +F32 /);
    await succeed("dequantize", "--no-splits", url, "t", "-o", "alone.bin");
  });
  test("what a server refuses is said in one line", async () => {
    const { url } = await serve((_request, response) => response.writeHead(404).end());
    await fail(1, /404/, "inspect", url);
  });
  test("headers are sent, and not repeated in messages", async () => {
    const { url } = await serve((request, response) => {
      if (request.headers.authorization === "Bearer secret") answerRange(request, response, content);
      else response.writeHead(401).end();
    });
    await succeed("inspect", "-H", "Authorization: Bearer secret", url);
    await fail(1, /401/, "inspect", url);
    await fail(
      2,
      /^gguf-native: --header must be 'Name: value' \(see/,
      "inspect",
      "-H",
      "Bearer secret",
      url,
    );
    await fail(2, /--header is for URLs/, "inspect", "-H", "a: b", "model.gguf");
  });
});

describe("dequantize", () => {
  test("fetches the tensors asked for, and no more", async () => {
    const { url, requests } = await serve(rangesOf(content));
    await succeed("dequantize", url, name, "-o", "k.npy");
    assert.deepEqual((await readNpy(at("k.npy"))).data, model.tensor(name).dequantizeSync());
    const [header, ...rest] = requests.map((request) => rangeOf(request));
    const { offset, byteLength } = model.tensor(name);
    assert.equal(header![0], 0);
    assert.deepEqual(rest, [[offset, offset + byteLength - 1]]);
  });
  test("many tensors, in pieces", async () => {
    const { url } = await serve(rangesOf(content));
    await succeed("dequantize", url, "blk.*", "-o", "blocks.safetensors", "--dtype", "bf16");
    const { tensors } = readSafetensors(at("blocks.safetensors"));
    assert.equal(tensors.size, 18);
    for (const [key, { bytes }] of tensors) {
      const bits = model.tensor(key).dequantizeSync({ dtype: "bf16" });
      assert.ok(bytes.equals(Buffer.from(bits.buffer)), key);
    }
  });
  test("a connection that is refused half way leaves nothing", async () => {
    const { url } = await serve((request, response) => {
      if (request.headers.range!.startsWith("bytes=0-")) answerRange(request, response, content);
      else response.writeHead(403).end();
    });
    await fail(1, /403/, "dequantize", url, "--all", "-o", "refused.safetensors");
    assert.ok(!existsSync(at("refused.safetensors")));
  });
  test("a type that is not known, and a summary", async () => {
    const unknown = { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) };
    const { url } = await serve(rangesOf(writeGguf({ tensors: [unknown, floats("t", [1, 2])] })));
    await fail(1, /unknown\(99\)/, "dequantize", url, "--all", "-o", "u.safetensors");
    await fail(2, /tensors of a URL need -o/, "dequantize", url, "t");
    await succeed("dequantize", url, "t", "-o", "t.bin");
    assert.deepEqual(readFileSync(at("t.bin")), Buffer.from(Float32Array.of(1, 2).buffer));
  });
});

test("other commands say what to do", () => {
  const url = "https://example.com/model.gguf";
  for (const args of [
    ["verify", "a.gguf", url],
    ["hash", url],
    ["bench", url],
    ["diff", "a.gguf", url],
    ["stats", url, "t"],
  ]) {
    expectFailure(
      args,
      2,
      /only inspect and dequantize read URLs: download 'https:\/\/example\.com\/model\.gguf' first/,
    );
  }
});

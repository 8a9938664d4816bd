/** Commands that read from servers, against a server of this process. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parse } from "gguf-native";
import { readNpy } from "../support/array-files";
import { at, blocks, expectFailure, expectTidy, floats, json, output, run } from "../support/cli";
import { splitKeys, writeGguf } from "../support/gguf-writer";
import { answerRange, type Handler, rangeOf, rangesOf, serve } from "../support/range-server";
import { sampleModel } from "../support/sample-model";

const content = sampleModel();
const model = parse(content);
const name = "blk.0.attn_k.weight";
/** Asks for a header. */
const guarded: Handler = (request, response) => {
  if (request.headers.authorization === "Bearer secret") answerRange(request, response, content);
  else response.writeHead(401).end();
};
/** Refuses what comes after the header. */
const refusing: Handler = (request, response) => {
  if (request.headers.range!.startsWith("bytes=0-")) answerRange(request, response, content);
  else response.writeHead(403).end();
};

describe("inspect", () => {
  test("shows the same as for a file, and fetches the header only", async () => {
    const padded = new Uint8Array(content.length + 2 ** 24);
    padded.set(content);
    const { url, requests } = await serve(rangesOf(padded));
    const stdout = await output("inspect", url);
    expectTidy(stdout);
    assert.match(stdout, /^model\.gguf\n {2}architecture +llama\n/);
    assert.match(stdout, /\n {2}parameters +7\.08 M in 20 tensors, 8\.13 bits each\n/);
    assert.equal(requests.length, 1);
    const { tensors } = JSON.parse(await output("inspect", "--json", url, "--filter", "*attn_k*"));
    assert.deepEqual(tensors[0], JSON.parse(JSON.stringify(model.tensor(name))));
  });
  test("the query of a URL, which may be a signature, is not shown", async () => {
    const { url } = await serve(rangesOf(content));
    const stdout = await output("inspect", `${url}?signature=secret`);
    assert.match(stdout, /^model\.gguf\n/);
    const json = await output("inspect", `${url}?signature=secret`, "--json");
    assert.equal(JSON.parse(json).path, url);
    assert.doesNotMatch(stdout + json, /secret/);
    await expectFailure(
      ["dequantize", `${url}?signature=secret`, "x*", "-o", "x.npy"],
      1,
      /^(?!.*secret).*no tensor's name/,
    );
  });
  test("one file of a split model alone", async () => {
    const shard = writeGguf({
      metadata: splitKeys(0, 2, 2),
      tensors: [floats("t", [1])],
    });
    const { url } = await serve(rangesOf(shard));
    await expectFailure(["inspect", url], 1, /alone with /);
    assert.match(await output("inspect", "--no-splits", url), /\bt +F32 /);
    await output("dequantize", "--no-splits", url, "t", "-o", "alone.bin");
  });
  test("headers are sent, and not shown in messages", async () => {
    const { url } = await serve(guarded);
    await output("inspect", "-H", "Authorization: Bearer secret", url);
    await expectFailure(["inspect", url], 1, /401/);
    await expectFailure(
      ["inspect", "-H", "Bearer secret", url],
      2,
      /^gguf-native: --header must be 'Name: value' \(see/,
    );
    await expectFailure(["inspect", "-H", "a: b", "model.gguf"], 2, /--header is for URLs/);
  });
});

describe("dequantize", () => {
  test("fetches the tensors asked for, and no more", async () => {
    const { url, requests } = await serve(rangesOf(content));
    await output("dequantize", url, name, "-o", "k.npy");
    assert.deepEqual((await readNpy(at("k.npy"))).data, model.tensor(name).dequantizeSync());
    const [header, ...rest] = requests.map((request) => rangeOf(request));
    const { offset, byteLength } = model.tensor(name);
    assert.equal(header![0], 0);
    assert.deepEqual(rest, [[offset, offset + byteLength - 1]]);
  });
  test("a connection that is refused half way leaves nothing", async () => {
    const { url } = await serve(refusing);
    await expectFailure(["dequantize", url, "--all", "-o", "refused.safetensors"], 1, /403/);
    assert.ok(!existsSync(at("refused.safetensors")));
  });
  test("a type that is not known, and a summary", async () => {
    const unknown = { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) };
    const { url } = await serve(rangesOf(writeGguf({ tensors: [unknown, floats("t", [1, 2])] })));
    await expectFailure(["dequantize", url, "--all", "-o", "u.safetensors"], 1, /unknown\(99\)/);
    assert.match(await output("dequantize", url, "t"), /^t\n {2}type +F32\n[\s\S]* first +1, 2\n$/);
    await output("dequantize", url, "t", "-o", "t.bin");
    assert.deepEqual(readFileSync(at("t.bin")), Buffer.from(Float32Array.of(1, 2).buffer));
  });
});

describe("verify, stats, hash and diff", () => {
  // Tensors of several pieces, of one, and without values that could be compared; a split model, a big-endian one.
  const tensors = [
    blocks("large", "Q1_0", [2 ** 23 + 2 ** 20], 3),
    blocks("small", "Q4_K", [256, 4], 4),
    floats("special", [Number.NaN, Infinity, 1, -0, 3]),
    floats("empty", [], [0]),
    { name: "unknown", type: 99, shape: [4], bytes: new Uint8Array(16) },
  ];
  const changed = [{ ...tensors[0]!, bytes: tensors[0]!.bytes.slice() }, ...tensors.slice(1)];
  // The sign of one weight in the first block and of one in the last.
  for (const place of [2, changed[0]!.bytes.length - 1]) changed[0]!.bytes[place]! ^= 1;
  const big = floats("special", [1, 2, 3]);
  big.bytes = Buffer.from(big.bytes).swap32();
  const files = {
    "model.gguf": writeGguf({ tensors }),
    "changed.gguf": writeGguf({ tensors: changed }),
    "big.gguf": writeGguf({ tensors: [big], byteOrder: "big" }),
    "sample.gguf": content,
  };
  for (const [name, bytes] of Object.entries(files)) writeFileSync(at(name), bytes);

  /** Serves the files; `url` of one is where it is. */
  async function serveFiles() {
    const state = { bytes: 0, running: 0, most: 0 };
    const server = await serve((request, response) => {
      const bytes = readFileSync(at(decodeURIComponent(request.url!.split("/").at(-1)!)));
      const [first, last] = rangeOf(request);
      state.bytes += Math.min(last + 1, bytes.length) - first;
      state.most = Math.max(state.most, ++state.running);
      // So late that other requests come meanwhile. It ends here: the client may ask again before the response closes.
      setTimeout(() => {
        state.running--;
        answerRange(request, response, bytes);
      }, 5);
    });
    return { state, url: (name: string) => server.url.replace("model.gguf", name) };
  }

  const commands: [command: string, files: string[], ...rest: string[]][] = [
    ["verify", ["model.gguf"]],
    ["verify", ["sample.gguf"]],
    ["verify", ["model.gguf", "sample.gguf"]],
    ["hash", ["model.gguf"]],
    ["hash", ["sample.gguf", "big.gguf"]],
    ["stats", ["model.gguf"], "[les]*"],
    ["stats", ["sample.gguf"], "*", "--bins", "7"],
    ["stats", ["big.gguf"], "special"],
    ["diff", ["model.gguf", "changed.gguf"]],
    ["diff", ["model.gguf", "model.gguf"]],
    ["diff", ["model.gguf", "big.gguf"]],
    ["diff", ["big.gguf", "big.gguf"]],
  ];
  for (const [command, names, ...rest] of commands) {
    test(`${command} ${[...names, ...rest].join(" ")}: the same as for files`, async () => {
      const { url } = await serveFiles();
      // Wide enough for the longer paths, too.
      const env = { COLUMNS: "200" };
      for (const options of [[], ["--json"]]) {
        const local = await run([command, ...names, ...rest, ...options], env);
        const shown = (text: string) => text.replaceAll(url(""), "");
        // All of them on the server, and for several every mixture with the first or last on this machine.
        const mixtures = [names.map(url)];
        if (names.length > 1) mixtures.push([names[0]!, ...names.slice(1).map(url)]);
        if (names.length > 1) mixtures.push([...names.slice(0, -1).map(url), names.at(-1)!]);
        for (const places of mixtures) {
          const remote = await run([command, ...places, ...rest, ...options], env);
          assert.equal(remote.status, local.status);
          assert.equal(shown(remote.stdout), local.stdout);
          assert.equal(shown(remote.stderr), local.stderr);
        }
      }
    });
  }
  test("a model in several files", async () => {
    await output("split sample.gguf part --max-tensors 9");
    const { url } = await serveFiles();
    const part = url("part-00002-of-00003.gguf");
    const whole = (await output("hash --whole sample.gguf")).split(" ")[0];
    assert.equal(await output("hash", "--whole", part), `${whole}  ${part}\n`);
    assert.equal(await output("diff", part, "sample.gguf"), "no differences\n");
    assert.match(await output("verify", part), /20 tensors, 7\.08 M values\n$/);
    assert.match(await output("verify", part, "--no-splits"), / 9 tensors, /);
  });
  test("several pieces are fetched at a time, not all, and each byte once", async () => {
    // Four tensors at a time; of each of those that diff compares, up to three parts.
    for (const [most, command, ...names] of [
      [4, "verify", "sample.gguf"],
      [4, "hash", "sample.gguf"],
      [12, "diff", "sample.gguf", "sample.gguf"],
    ] as [number, string, ...string[]][]) {
      const { state, url } = await serveFiles();
      await run([command, ...names.map(url)]);
      assert.ok(state.most > 1 && state.most <= most * names.length, `${command}: ${state.most}`);
      // The header's first bytes are fetched, and what of the data lies among them once more.
      const all = names.reduce((sum, name) => sum + files[name as keyof typeof files].length, 0);
      assert.ok(state.bytes <= all + names.length * 2 ** 19, `${command}: ${state.bytes} of ${all}`);
    }
  });
  test("headers are sent", async () => {
    const { url } = await serve(guarded);
    const header = ["-H", "Authorization: Bearer secret"];
    await output("verify", ...header, url);
    await output("hash", ...header, url);
    await output("stats", ...header, url, name);
    await output("diff", ...header, url, "sample.gguf");
    await expectFailure(["diff", ...header, "sample.gguf", "sample.gguf"], 2, /--header is for URLs/);
    await expectFailure(["hash", url], 1, /401/);
  });
  test("a server that refuses half way", async () => {
    const { url } = await serve(refusing);
    for (const args of [
      ["hash", url],
      ["stats", url, name],
      ["diff", url, "sample.gguf"],
    ]) {
      await expectFailure(args, 1, /403/);
    }
    await expectFailure(["verify", url], 1, /403/, `bad  ${url}  cannot be read\n`);
    const [{ findings }] = (await json(["verify", url], 1)).files;
    assert.equal(findings[0].code, "ERR_GGUF_OPEN");
  });
  test("a file that is cut off", async () => {
    const { url } = await serve(rangesOf(content.subarray(0, model.tensor("blk.1.attn_q.weight").offset)));
    await expectFailure(["verify", url], 1, /incomplete: has [\d,]+ bytes, needs [\d,]+;/, `bad  ${url}  cut off\n`);
    await output("stats", url, name);
    await expectFailure(["stats", url, "blk.1.attn_q.weight"], 1, /blk\.1\.attn_q\.weight/);
  });
});

test("other commands ask for a file", async () => {
  const url = "https://example.com/model.gguf";
  for (const args of [
    ["bench", url],
    ["set", url, "key", "value"],
    ["split", url, "--max-tensors", "9"],
    ["merge", url, "out.gguf"],
  ]) {
    const message =
      /this command reads files on this machine only: download 'https:\/\/example\.com\/model\.gguf' first/;
    await expectFailure(args, 2, message);
  }
});

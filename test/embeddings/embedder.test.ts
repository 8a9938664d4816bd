/** gguf-native/embeddings: opening, what is refused, calls at a time, aborts, and the ends of threads. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { buildSync } from "esbuild";
import { convertModel, openSync, parse } from "gguf-native";
import { Embedder } from "gguf-native/embeddings";
import { CHECKPOINTS, writeCheckpoint } from "../support/checkpoints";
import { lineOf } from "../support/child";
import { str, type TypedValue, u32 } from "../support/gguf-writer";
import { testedAddon } from "../support/installed";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sampleBert } from "../support/sample-bert";

const folder = temporaryFolder();
const json = (value: unknown): string => JSON.stringify(value);
const bytes = sampleBert();
const model = join(folder, "bert.gguf");
writeFileSync(model, bytes);

const TEXTS = ["a cat", "", "The dog, and the cat!", "naïve \ud800", "\u0001\u0002", "tensor ".repeat(300)];

describe("an embedder", () => {
  test("gives the same vectors, wherever its model is", async () => {
    const mapped = openSync(model);
    const expected = await vectorsOf(model);
    const moved = join(folder, "moved.gguf");
    writeFileSync(moved, bytes);
    const url = pathToFileURL(model);
    for (const place of [url, url.href, mapped, parse(bytes), new Blob([bytes])])
      assert.deepEqual(await vectorsOf(place), expected);
    for (const prepare of [true, false]) {
      using other = await Embedder.open(model, { prepare });
      assert.deepEqual(await other.embed(TEXTS), expected);
    }
    mapped.close();
    await assert.rejects(Embedder.open(mapped), { code: "ERR_GGUF_CLOSED" });
    using swapped = openSync(moved);
    renameSync(model, `${model}.old`);
    renameSync(`${model}.old`, moved);
    writeFileSync(model, bytes);
    await assert.rejects(Embedder.open(swapped), { code: "ERR_GGUF_CHANGED" });
  });

  test("opens a checkpoint, with the prompts that it names", async () => {
    const checkpoint = CHECKPOINTS.find(({ config }) => JSON.stringify(config).includes("BertModel"))!;
    const prompts = json({ prompts: { query: "the ", document: "" } });
    const files = { ...checkpoint.files, "config_sentence_transformers.json": prompts };
    const place = writeCheckpoint(temporaryFolder(), { ...checkpoint, files });
    const converted = join(folder, "converted.gguf");
    for (const [activations, type] of [
      ["int8", "q8_0"],
      ["f32", "f32"],
    ] as const) {
      await convertModel(place, converted, { type });
      using expected = await Embedder.open(converted, { activations });
      using embedder = await Embedder.open(place, { activations });
      assert.deepEqual(embedder.prompts, { query: "the ", document: "" });
      const vectors = await embedder.embed(["as b", "a"], { prompt: "query" });
      assert.deepEqual(vectors, await expected.embed(["the as b", "the a"]));
      await assert.rejects(embedder.embed(["a"], { prompt: "qery" }), /did you mean 'query'|query, document/);
    }
    writeFileSync(join(place, "modules.json"), json([{ type: "sentence_transformers.models.Dense" }]));
    await assert.rejects(Embedder.open(place), { code: "ERR_GGUF_UNSUPPORTED_TYPE" });
  });

  /** The first numbers of vectors, and a score, by transformers 5.23 and PyTorch. */
  const THEIRS = {
    "multilingual-e5-tiny": ["ab a b", -0.07377, -0.13823, -0.01722, 0.14877],
    roberta: ["ab a b", -0.10614, 0.20115, 0.05308, -0.13966],
    "nomic-embed-text-tiny": ["the a b", -0.02474, -0.0073, -0.05596, 0.08001],
    "embedding-gemma-tiny": ["e".repeat(40), 0.11528, 0.03013, 0.09045, 0.18622],
    "bge-reranker-tiny": ["ab a b", -0.0177],
  } as const;
  const placeOf = (name: string) => writeCheckpoint(temporaryFolder(), CHECKPOINTS.find((each) => each.name === name)!);
  for (const [name, [text, ...numbers]] of Object.entries(THEIRS)) {
    test(`has the vectors of transformers: ${name}`, async () => {
      const pooling = name === "roberta" ? "mean" : undefined;
      using embedder = await Embedder.open(placeOf(name), { activations: "f32", pooling });
      const scores = embedder.hasScores ? await embedder.score("a b", [text]) : undefined;
      const found = scores ?? (await embedder.embed([text]))[0]!;
      const isNear = numbers.every((number, i) => Math.abs(found[i]! - number) < 6e-5);
      assert.ok(isNear, `${found.slice(0, 4)}`);
    });
  }
  test("refuses scores for which a matrix is missing", async () => {
    await assert.rejects(Embedder.open(placeOf("bert-reranker")), /scores go through pooler\.dense/);
  });

  test("gives a text the same vector alone and among others, in the order of the texts", async () => {
    using embedder = await Embedder.open(model);
    const [together, ...alone] = await Promise.all([
      embedder.embed(TEXTS),
      ...TEXTS.map((text) => embedder.embed([text])),
    ]);
    assert.deepEqual(alone.flat(), together);
    assert.deepEqual(await embedder.embed([]), []);
    assert.deepEqual([embedder.dimensions, embedder.maxTokens, embedder.hasScores], [128, 128, false]);
  });

  test("cuts vectors, and scales them to length 1 after that", async () => {
    using embedder = await Embedder.open(model);
    const [whole] = await embedder.embed(["a cat"], { normalize: false });
    const [cut] = await embedder.embed(["a cat"], { normalize: false, dimensions: 32 });
    assert.deepEqual(cut, whole!.slice(0, 32));
    const [short] = await embedder.embed(["a cat"], { dimensions: 32 });
    assert.ok(Math.abs(Math.hypot(...short!) - 1) < 1e-6);
    assert.ok(Math.hypot(...short!.map((x, i) => x - cut![i]! / Math.hypot(...cut!))) < 1e-6);
  });

  test("reports progress, and ends calls that are aborted, and no others", async () => {
    using embedder = await Embedder.open(model);
    const texts = Array.from({ length: 100 }, (_, i) => `the number ${i}`);
    const reports: number[] = [];
    const control = new AbortController();
    const reason = new Error("enough");
    const [aborted, others] = await Promise.allSettled([
      embedder.embed(texts, {
        signal: control.signal,
        onProgress: (done, total) => {
          reports.push(done);
          assert.equal(total, 100);
          control.abort(reason);
        },
      }),
      embedder.embed(texts),
    ]);
    assert.deepEqual(aborted, { status: "rejected", reason });
    assert.equal(reports.length, 1);
    assert.equal(others.status, "fulfilled");
    await assert.rejects(embedder.embed(texts, { signal: AbortSignal.abort(reason) }), reason);
    const wrong = new Error("of onProgress");
    const onProgress = () => {
      throw wrong;
    };
    await assert.rejects(embedder.embed(texts, { onProgress }), wrong);
    assert.equal((await embedder.embed(["a cat"])).length, 1);
    await assert.rejects(Embedder.open(model, { signal: AbortSignal.abort(reason) }), reason);
    const during = new AbortController();
    const opening = Embedder.open(model, { signal: during.signal });
    setImmediate(() => during.abort(reason));
    await assert.rejects(opening, reason);
  });

  test("lets the event loop go on, and takes calls in turn", async () => {
    using embedder = await Embedder.open(model);
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const order: string[] = [];
    const long = embedder.embed(Array.from({ length: 2000 }, () => TEXTS[2]!)).then(() => order.push("long"));
    await embedder.embed(["a cat"]);
    order.push("short");
    await long;
    clearInterval(timer);
    assert.deepEqual(order, ["short", "long"]);
    assert.ok(turns > 10, `${turns}`);
  });

  test("rejects what is under way when it is closed, and what is asked after that", async () => {
    const embedder = await Embedder.open(model);
    const calls = [embedder.embed(TEXTS), embedder.embed(TEXTS)];
    embedder.close();
    embedder.close();
    for (const call of [...calls, embedder.embed(TEXTS)]) {
      await assert.rejects(call, { name: "GgufError", code: "ERR_GGUF_CLOSED", path: model });
    }
    assert.equal(embedder.closed, true);
  });

  test("prepares the matrices of a small model, unless it is told not to", async () => {
    const { load } = await import(pathToFileURL(join(projectRoot, "dist", "embeddings", "load.js")).href);
    for (const prepare of [undefined, true, false]) {
      const { file, prepareAll } = await load(model, { activations: "int8", threads: 1, prepare });
      assert.equal(prepareAll === undefined, prepare !== undefined);
      await prepareAll?.();
      let works = false;
      await file.tensor("blk.0.attn_q.weight").prepare({ onProgress: () => (works = true) });
      assert.equal(works, prepare === false);
      file.close();
    }
  });

  test("starts another thread where one has ended, and lets the process end", async () => {
    const own = join(folder, "away.gguf");
    copyFileSync(model, own);
    const script = `
      const threads = require("node:worker_threads");
      let last;
      threads.Worker = class extends threads.Worker {
        constructor(...args) { super(...args); last = this; }
      };
      const { Embedder } = require(${JSON.stringify(join(projectRoot, "dist", "embeddings"))});
      const path = ${JSON.stringify(own)};
      Embedder.open(path).then(async (embedder) => {
        const found = [];
        for (const code of ["ERR_WORKER_OUT_OF_MEMORY", undefined]) {
          last.postMessage = () => {}; // so that none is answered before the thread ends
          const calls = [embedder.embed(["a cat"]), embedder.embed(["a dog"])];
          if (code !== undefined) last.emit("error", Object.assign(new Error(), { code }));
          last.terminate();
          for (const call of calls) found.push((await call.catch((error) => error)).code);
          found.push((await embedder.embed(["a cat"])).length);
        }
        // While the file is away, no other thread can start; then one does.
        const { renameSync } = require("node:fs");
        renameSync(path, path + ".away");
        last.terminate();
        await new Promise((resolve) => last.once("exit", resolve));
        for (let i = 0; i < 2; i++) found.push((await embedder.embed(["a cat"]).catch((error) => error)).code);
        renameSync(path + ".away", path);
        found.push((await embedder.embed(["a cat"])).length);
        console.log(JSON.stringify(found));
      });`;
    const [memory, closed] = ["ERR_GGUF_OUT_OF_MEMORY", "ERR_GGUF_CLOSED"];
    const gone = "ERR_GGUF_OPEN";
    const expected = [memory, memory, 1, closed, closed, 1, gone, gone, 1];
    assert.deepEqual(JSON.parse(await lineOf(["-e", script])), expected);
  });

  test("works in steps where a bundle has no file for a thread", async () => {
    const outfile = join(folder, "bundle.cjs");
    const entry = join(projectRoot, "dist", "embeddings", "index.js");
    buildSync({ entryPoints: [entry], bundle: true, platform: "node", outfile, logLevel: "error" });
    const script = `
      const { Embedder } = require(${json(outfile)});
      Embedder.open(${json(model)}).then(async (embedder) => {
        const texts = ${json(TEXTS)};
        const calls = [embedder.embed(texts), embedder.embed(texts)];
        const [[vectors], ended] = [await Promise.all(calls), embedder.embed(texts).catch(({ code }) => code)];
        embedder.close();
        console.log(JSON.stringify([vectors.map((vector) => [...vector]), await ended]));
      });`;
    const env = { ...process.env, GGUF_NATIVE_ADDON: testedAddon };
    const [vectors, ended] = JSON.parse(await lineOf(["-e", script], { env }));
    assert.deepEqual(
      vectors,
      (await vectorsOf(model)).map((vector) => [...vector]),
    );
    assert.equal(ended, "ERR_GGUF_CLOSED");
  });

  test("looks at no more of a text than counts", async () => {
    using embedder = await Embedder.open(model);
    const [long, longer, late, last] = await embedder.embed([
      ...["cat ".repeat(126), "cat ".repeat(2 ** 21), `${" ".repeat(2 ** 20)}a cat`, "a cat"],
    ]);
    assert.deepEqual(longer, long);
    assert.deepEqual(late, last);
  });

  test("reads names of special tokens in a text as these tokens, as the model's own tokenizer does", async () => {
    using embedder = await Embedder.open(model);
    const [special, text, same] = await embedder.embed(["cat [SEP] dog", "cat [sep] dog", "cat [ sep ] dog"]);
    assert.deepEqual(text, same);
    assert.notDeepEqual(special, text);
  });
});

describe("an embedder refuses", () => {
  const GGUF = { name: "GgufError" };
  for (const [what, change, expected] of [
    ["another architecture", [["general.architecture", str("llama")]], /the architectures bert, .*, not llama$/],
    ["vectors that are not pooled", [["bert.pooling_type", u32(0)]], /pooling_type 0 .* options\.pooling$/],
    ["heads that do not fit", [["bert.attention.head_count", u32(3)]], /a divisor of the 128 .* found 3$/],
    ["layers that are not there", [["bert.block_count", u32(1)]], /must be 2, .*, found 1$/],
    ["a context without positions", [["bert.context_length", u32(1000)]], /up to the 128 .*, found 1000$/],
    ["another length", [["bert.embedding_length", u32(64)]], /must have the shape 64 x any, found 128 x/],
  ] as const) {
    test(what, async () => {
      const metadata = change.map(([key, value]): [string, TypedValue] => [key, value]);
      await assert.rejects(Embedder.open(parse(sampleBert({ metadata }))), { ...GGUF, message: expected });
    });
  }

  test("what is no model, and arguments of the wrong type", async () => {
    const empty = join(folder, "empty");
    mkdirSync(empty);
    const type = { code: "ERR_INVALID_ARG_TYPE" };
    const value = { code: "ERR_INVALID_ARG_VALUE" };
    const open = Embedder.open as (...args: unknown[]) => Promise<Embedder>;
    const path = join(folder, "absent.gguf");
    await assert.rejects(open(path), { ...GGUF, code: "ERR_GGUF_OPEN", path });
    await assert.rejects(open(new Blob(["no model"])), { ...GGUF, code: "ERR_GGUF_MAGIC" });
    for (const place of [undefined, 1, {}]) await assert.rejects(open(place), type);
    await assert.rejects(open(model, { pooling: "sum" }), value);
    await assert.rejects(open(model, { activations: "f16" }), value);
    await assert.rejects(open(model, { threads: 0 }), { code: "ERR_GGUF_RANGE" });
    await assert.rejects(open(model, { treads: 1 }), /'treads'.*'threads'/);
    using embedder = await Embedder.open(model);
    const embed = embedder.embed.bind(embedder) as (...args: unknown[]) => Promise<unknown>;
    await assert.rejects(embed("a cat"), type);
    await assert.rejects(embed(["a", 1]), /texts\[1\]/);
    for (const dimensions of [0, 129, 1.5]) {
      await assert.rejects(embed(["a"], { dimensions }), { code: "ERR_GGUF_RANGE" });
    }
    await assert.rejects(embed(["a"], { prompt: "query" }), value);
    await assert.rejects(embedder.score("a", ["b"]), { code: "ERR_GGUF_UNSUPPORTED_TYPE" });
  });
});

async function vectorsOf(place: Parameters<typeof Embedder.open>[0]): Promise<Float32Array[]> {
  using embedder = await Embedder.open(place);
  return await embedder.embed(TEXTS);
}

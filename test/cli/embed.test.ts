/** `gguf-native embed`: vectors of texts in files, and what is found in them. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { openSafetensors } from "gguf-native";
import { Embedder } from "gguf-native/embeddings";
import { outcomeOf, runNode, start, succeeds } from "../support/child";
import { at, bin, EVIL, expectFailure, expectTidy, folder, json, leftovers, output, run } from "../support/cli";
import { u32 } from "../support/gguf-writer";
import { sampleBert } from "../support/sample-bert";
import { smallEmbedder } from "../support/small-embedder";

const TEXTS = ["the cat and the dog", "a page", "", "memory of the browser: 42", "the dog"];
const NUMBERS = 128;
let vectors: Float32Array[];

before(async () => {
  writeFileSync(at("model.gguf"), sampleBert());
  writeFileSync(at("texts.txt"), `\ufeff${TEXTS.join("\r\n")}\n`);
  writeFileSync(
    at("texts.jsonl"),
    TEXTS.map((body, i) => `{"id": 1234567890123456789${i}, "body": ${JSON.stringify(body)} } \n`).join(""),
  );
  const embedder = await Embedder.open(at("model.gguf"));
  vectors = await embedder.embed(TEXTS);
  embedder.close();
});

const bytesOf = (some: readonly Float32Array[]): Buffer =>
  Buffer.concat(some.map((vector) => new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)));
const linesOf = (text: string) => text.split("\n").slice(0, -1);

describe("vectors", () => {
  test("are printed as lines of JSON, to the bit", async () => {
    const lines = linesOf(await output("embed model.gguf texts.txt")).map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ text }) => text),
      TEXTS,
    );
    assert.deepEqual(
      lines.map(({ embedding }) => Float32Array.from(embedding)),
      vectors,
    );
    const prefixed = await output("embed model.gguf texts.txt --skip 4 --prefix", "a page of ");
    const alone = runNode([bin, "embed", "model.gguf"], { cwd: folder, input: "a page of the dog" });
    assert.deepEqual(JSON.parse(prefixed).embedding, JSON.parse(alone.stdout).embedding);
    const piped = runNode([bin, "embed", "model.gguf"], { cwd: folder, input: TEXTS.join("\n") });
    assert.equal(piped.stdout, await output("embed model.gguf texts.txt"));
  });

  // Node makes the standard input of a child one that waits: another program has to take that back.
  const noPython = { skip: !succeeds("python3") && "python3 is not installed" };
  test("waits for standard input that has nothing yet and says so", noPython, async () => {
    const unblock = "import os, sys; os.set_blocking(0, False); os.execv(sys.argv[1], sys.argv[1:])";
    const child = start("python3", ["-c", unblock, process.execPath, bin, "embed", at("model.gguf")]);
    setTimeout(() => child.stdin.end("a page"), 1500);
    const { stdout, stderr } = await outcomeOf(child);
    assert.equal(stderr, "");
    assert.deepEqual(Float32Array.from(JSON.parse(stdout).embedding), vectors[1]);
  });
  test("are added to lines of JSON, which stay what they are", async () => {
    const lines = linesOf(await output("embed model.gguf texts.jsonl --field body"));
    assert.deepEqual(Float32Array.from(JSON.parse(lines[1]!).embedding), vectors[1]);
    for (const [i, line] of lines.entries())
      assert.ok(line.startsWith(`{"id": 1234567890123456789${i}, "body": ${JSON.stringify(TEXTS[i])},"embedding":[`));
  });
  test("in files are the same, and --skip leaves out the first", async () => {
    for (const skip of [0, 2, 5]) {
      const count = TEXTS.length - skip;
      const expected = bytesOf(vectors.slice(skip));
      const args = ["--force", "--skip", `${skip}`];
      const said = await output("embed model.gguf texts.txt -o v.npy", ...args);
      assert.match(said, new RegExp(`^v\\.npy: ${count} vectors of 128 numbers \\(.*\\)\n$`));
      const npy = readFileSync(at("v.npy"));
      assert.match(npy.toString("latin1", 0, 128), new RegExp(`'<f4'.*'shape': \\(${count}, ${NUMBERS}\\)`));
      assert.ok(npy.subarray(128).equals(expected));
      await output("embed model.gguf texts.txt -o v.safetensors", ...args);
      const model = await openSafetensors(at("v.safetensors"));
      assert.ok(Buffer.from(await model.tensor("embeddings").read()).equals(expected));
      model.close();
      await output("embed model.gguf texts.txt -o v.jsonl", ...args);
      assert.equal(readFileSync(at("v.jsonl"), "utf8"), await output("embed model.gguf texts.txt", ...args));
    }
    assert.deepEqual(leftovers(), []);
  });
  test("are shorter, or not of length 1, as asked", async () => {
    const norms = async (...args: string[]): Promise<number[]> =>
      linesOf(await output("embed model.gguf texts.txt", ...args)).map((line) => {
        const { embedding } = JSON.parse(line);
        return Math.hypot(...embedding) * (embedding.length === 16 ? 1 : 10);
      });
    for (const norm of await norms("--dimensions", "16")) assert.ok(Math.abs(norm - 1) < 1e-6);
    for (const norm of await norms("--no-normalize")) assert.ok(Math.abs(norm - 10) > 1e-3);
    assert.notEqual(
      await output("embed model.gguf texts.txt --activations f32 --threads 1"),
      await output("embed model.gguf texts.txt"),
    );
  });
});

describe("a search", () => {
  test("finds the same in texts and in each file of vectors", async () => {
    const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
    const found = TEXTS.map((text, i) => ({ line: i + 1, text, score: dot(vectors[i]!, vectors[4]!) }))
      .sort((a, b) => b.score - a.score)
      .slice(0, 2);
    for (const format of ["npy", "safetensors", "jsonl"])
      await output("embed model.gguf texts.txt --force -o", `all.${format}`);
    for (const file of ["texts.txt", "texts.jsonl", "all.npy", "all.safetensors", "all.jsonl"]) {
      const hasText = !/npy|safetensors/.test(file);
      const field = file === "texts.jsonl" ? ["--field", "body"] : [];
      const args = ["embed", "model.gguf", file, "--query", "the dog", "--top", "2", ...field];
      const result = await json(args);
      assert.equal(result.query, "the dog");
      assert.ok(Math.abs(result.found[0].score - 1) < 1e-6);
      const expected = found.map(({ line, text }) => (hasText ? { line, text } : { line }));
      assert.deepEqual(
        result.found.map(({ score: _, ...rest }: { score: number }) => rest),
        expected,
        file,
      );
      assert.match(
        (await run(args)).stdout,
        hasText ? /^ +score +line +text\n +1\.0000 +5 +the dog\n/ : /^ +score +line\n +1\.0000 +5\n/,
      );
    }
    const skipped = await json("embed model.gguf all.npy --query a --skip 4");
    assert.deepEqual(
      skipped.found.map(({ line }: { line: number }) => line),
      [5],
    );
  });
  test("lists what a reranker gives", async () => {
    const metadata: [string, ReturnType<typeof u32>][] = [["bert.pooling_type", u32(4)]];
    writeFileSync(at("reranker.gguf"), smallEmbedder("bert", { hasScores: true, metadata }));
    using reranker = await Embedder.open(at("reranker.gguf"));
    const scores = await reranker.score("the dog", TEXTS);
    const { found } = await json(["embed", "reranker.gguf", "texts.txt", "--query", "the dog", "--top", "9"]);
    assert.equal(found.length, TEXTS.length);
    for (const { line, score } of found) assert.equal(score, scores[line - 1]);
    assert.deepEqual(
      found,
      [...found].sort((a: { score: number }, b: { score: number }) => b.score - a.score),
    );
  });
  test("escapes texts, and fits every width", async () => {
    writeFileSync(
      at("evil.jsonl"),
      `${JSON.stringify({ text: EVIL })}\n${JSON.stringify({ text: "x ".repeat(500) })}\n`,
    );
    for (const width of [40, 80])
      expectTidy((await run("embed model.gguf evil.jsonl --query x", { COLUMNS: `${width}` })).stdout, width);
  });
});

test("what is wrong is named with its line", async () => {
  const files: Record<string, string | Uint8Array> = {
    "latin.txt": Uint8Array.of(97, 10, 0xe9, 10),
    "cut.jsonl": '{"text":"a"}\n{"te',
    "blank.jsonl": '{"text":"a"}\n\n{"text":"b"}',
    "other.jsonl": '{"text":"a"}\n{"body":"b"}',
    "number.jsonl": '{"text":"a"}\n{"text":1}',
    "list.jsonl": '["a"]',
    "twice.jsonl": '{"text":"a"}\n{"text":"a","embedding":[1]}',
    "short.jsonl": '{"text":"a","embedding":[1,2]}\n{"text":"a","embedding":[1]}',
    "odd.npy": "\x93NUMPY",
    "wide.jsonl": `{"text":"a","embedding":[${Array(200).fill(1)}]}`,
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(at(name), content);
  mkdirSync(at("folder"), { recursive: true });
  for (const [args, message, status = 1] of [
    ["latin.txt", /latin\.txt: line 2: it is not UTF-8/],
    ["cut.jsonl", /cut\.jsonl: line 2: no JSON: /],
    ["blank.jsonl", /line 2: it is empty/],
    ["other.jsonl", /line 2: 'text' is not there/],
    ["number.jsonl", /line 2: 'text' is no text/],
    ["list.jsonl", /line 1: it is no JSON object/],
    ["twice.jsonl", /line 2: it has a member 'embedding' already/],
    ["short.jsonl --query x --dimensions 2", /line 2: 'embedding' is no array of 2 numbers/],
    ["wide.jsonl --query x", /wide\.jsonl: its vectors have 200 numbers, and that of the query would have 128/],
    ["all.npy --query x --dimensions 7", /have 128 numbers, and that of the query would have 7/],
    ["odd.npy --query x", /odd\.npy: no \.npy file of a matrix/],
    ["none.txt", /none\.txt/],
    ["texts.txt --dimensions 129", /129/],
    ["texts.txt --prompt x", /prompt/],
    ["texts.txt --skip 6", /--skip 6 is more than the 5 texts/, 2],
    ["all.npy", /'all\.npy' has vectors: --query searches them/, 2],
    ["texts.txt -o v.bin", /'v\.bin' must end in \.npy, \.safetensors or \.jsonl/, 2],
    ["texts.txt --field a", /--field is for --jsonl/, 2],
    ["texts.txt --top 3", /--top and --json are for --query/, 2],
    ["texts.txt --query a -o a.npy", /either --query or -o/, 2],
    ["texts.txt -o all.npy", /exists already/],
    ["all.jsonl --query x -o all.jsonl", /either/, 2],
  ] as [string, RegExp, (1 | 2)?][])
    await expectFailure(`embed model.gguf ${args}`, status, message);
  await expectFailure("embed", 2, /missing MODEL/);
  await expectFailure("embed texts.txt texts.txt", 1, /texts\.txt: not a GGUF file/);
});

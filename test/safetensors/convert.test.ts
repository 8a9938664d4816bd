/** Checkpoints as GGUF files: what llama.cpp's converter makes of them, and what is refused. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type ConvertModelOptions, convertModel, GgufError, openSync, quantizeModel } from "gguf-native";
import { ARCHITECTURES } from "#dist/convert/architectures";
import { placeOf as checkpointPlace, openCheckpoint } from "#dist/convert/converted-model";
import { frontMatter } from "#dist/convert/front-matter";
import { folderName } from "#dist/convert/model-name";
import type { Place } from "#dist/safetensors/folder";
import type { Source } from "#dist/source/source";
import { wordRuleNames } from "#dist/tokenizer/word-rules";
import { CHECKPOINTS, type CheckpointCase, writeCheckpoint } from "../support/checkpoints";
import { lineOf } from "../support/child";
import { folder, run } from "../support/cli";
import { emulated } from "../support/emulated";
import { fileFacts, modelFacts } from "../support/model-facts";
import { projectRoot } from "../support/paths";
import { answerRange, rangesOf, serve } from "../support/range-server";
import { assertRecorded } from "../support/recorded";
import { sanitized } from "../support/sanitized";
import { writeSparseSafetensors } from "../support/sparse-file";

const out = join(folder, "out.gguf");
const places = new Map(CHECKPOINTS.map((each) => [each.name, writeCheckpoint(folder, each)]));
const placeOf = (name: string): string => places.get(name) as string;

for (const { name, types, wordRule } of CHECKPOINTS) {
  for (const [i, type] of types.entries()) {
    test(`${name} as ${type}: every key and every byte of llama.cpp's converter`, async () => {
      // The rule for words is found, or named.
      const rule = i === 0 || wordRule === "jina-v2-en" ? {} : { wordRule };
      await convertModel(placeOf(name), out, { type, ...rule });
      assertRecorded("converted", `${name} ${type}`, fileFacts(out));
    });
  }
}

/** A place whose files tell how many bytes are read of them. */
async function counted(path: string): Promise<{ place: Place; bytesOf: (name: string) => number }> {
  const counts = new Map<string, number>();
  const { folder } = await checkpointPlace(path);
  const open = async (name: string): Promise<Source> => {
    const source = await folder.open(name);
    const read: Source["read"] = async (begin, target, ...rest) => {
      counts.set(name, (counts.get(name) ?? 0) + target.length);
      return source.read(begin, target, ...rest);
    };
    return new Proxy(source, { get: (_, key) => (key === "read" ? read : bound(source, key)) });
  };
  return { place: { folder: { ...folder, open } }, bytesOf: (name) => counts.get(name) ?? 0 };
}

function bound(source: Source, key: string | symbol): unknown {
  const value: unknown = Reflect.get(source, key);
  return typeof value === "function" ? value.bind(source) : value;
}

for (const heads of [4, 1]) {
  test(`any part of a tensor whose rows have another order, in heads of ${128 / heads} rows`, async () => {
    const path = writeCheckpoint(join(folder, "heads"), caseOf("mistral-v0.3"));
    edit("config.json", (config) => (config.num_attention_heads = heads))(path);
    const { place, bytesOf } = await counted(path);
    const { converted } = await openCheckpoint(place, { fileType: () => 0 });
    const tensor = converted.tensor("blk.0.attn_q.weight");
    const whole = await tensor.dequantize();
    const columns = 64;
    const { model } = await openCheckpoint(place, { fileType: () => 0 });
    const stored = await model.tensor("model.layers.0.self_attn.q_proj.weight").dequantize();
    const length = 128 / heads;
    for (let row = 0; row < 128; row++) {
      const inHead = row % length;
      const theirs = row - inHead + (inHead % 2) * (length / 2) + Math.floor(inHead / 2);
      const rowOf = (numbers: Float32Array, at: number) => numbers.slice(columns * at, columns * (at + 1));
      assert.deepEqual(rowOf(whole, row), rowOf(stored, theirs), `row ${row}`);
    }
    for (let start = 0; start < whole.length; start += 7) {
      for (const length of [1, 40, 70, 1000, whole.length / 2 + 3, whole.length]) {
        const end = Math.min(start + length, whole.length);
        assert.deepEqual(await tensor.dequantize({ start, end }), whole.slice(start, end));
      }
    }
    // However long a head is, each row is read about once.
    const before = bytesOf("model.safetensors");
    for (let start = 0; start < whole.length; start += 8 * columns) {
      await tensor.dequantize({ start, end: start + 8 * columns });
    }
    const times = (bytesOf("model.safetensors") - before) / (2 * whole.length);
    assert.ok(times <= 4, `it is read ${times} times`);
    converted.close();
    model.close();
  });
}

test("what the folder of a checkpoint is called", () => {
  for (const [path, name] of [
    ["hf://acme/Name/", "Name"],
    ["hf://acme/Name.v1-2@v1.0/", "Name.v1-2"],
    ["hf://models/acme/Name@refs/pr/1/", "Name"],
    ["hf://acme/Name@main/one/two@3/", "two@3"],
    ["https://huggingface.co/acme/Name/resolve/main/", "Name"],
    ["https://huggingface.co/acme/Name/resolve/refs%2Fpr%2F1/sub/", "sub"],
    ["https://example.com/a/My%20Model/?sig=a/b", "My Model"],
    ["https://example.com/100%/#a/b", "100%"],
    ["https://example.com:8080/", ""],
    ["/models/Qwen2.5-0.5B/", "Qwen2.5-0.5B"],
    ["/models/x/../Name@main/", "Name@main"],
    ["./", basename(process.cwd())],
  ] as const) {
    assert.equal(folderName(path), name, path);
  }
});

test("the revision of a repository is no part of the model's name", async () => {
  const path = writeCheckpoint(join(folder, "hub"), caseOf("qwen3"));
  const server = await serve((request, response) => {
    const name = /^\/acme\/Tiny-7B-chat\/resolve\/main\/(.+)$/.exec(request.url ?? "")?.[1] ?? "";
    if (existsSync(join(path, name))) rangesOf(readFileSync(join(path, name)))(request, response);
    else response.writeHead(404).end();
  });
  process.env.HF_ENDPOINT = new URL(server.url).origin;
  await convertModel("hf://acme/Tiny-7B-chat@main", out, { headers: { "x-key": "1" } });
  assert.ok(server.requests.every(({ headers }) => headers["x-key"] === "1"));
  const { metadata } = openSync(out);
  assert.equal(metadata.get("general.name"), "Tiny 7B Chat");
  const general = [...metadata].filter(([key]) => key.startsWith("general."));
  assert.ok(!general.some(([, value]) => String(value).includes("@")));
  rmSync(out);
});

const page = readFileSync(join(projectRoot, "docs", "convert.md"), "utf8");
test("the page about converting has the name of every rule for words", () => {
  const list = /\n### Rules for words\n(.*?)\n## /s.exec(page)?.[1] ?? "";
  const names = [...list.matchAll(/`([^`]+)`/g)].map(([, name]) => name).filter((name) => name !== "--word-rule");
  assert.deepEqual(names.sort(), [...wordRuleNames].sort());
});

test("the page about converting has every architecture, in both tables", () => {
  const cells = (heading: string, column: number): string[] => {
    const [, lines = ""] = new RegExp(`\n## ${heading}\n.*?\n\\|[-|]+\\|\n(.*?)\n\n`, "s").exec(page) ?? [];
    const texts = lines.split("\n").map((line) => line.split("|")[column] ?? "");
    return texts.flatMap((text) => Array.from(text.matchAll(/`([^`]+)`/g), ([, name = ""]) => name));
  };
  const names = [...new Set(ARCHITECTURES.map(({ name }) => name))].sort();
  assert.deepEqual([...new Set(cells("What is converted", 1))].sort(), names);
  assert.deepEqual(cells("What works", 1).sort(), names);
  const classes = [...new Set(ARCHITECTURES.flatMap(({ classes }) => classes))];
  assert.deepEqual(cells("What is converted", 2).sort(), classes.sort());
});

test("a mix: what quantizing the converted file gives", async () => {
  const place = placeOf("qwen3");
  const at = (name: string): string => join(folder, `${name}.gguf`);
  const [f32, ours, theirs] = [at("f32"), at("ours"), at("theirs")];
  await convertModel(place, f32, { type: "f32" });
  await quantizeModel(f32, theirs, { type: "Q4_K_M" });
  let most = 0;
  const report = await convertModel(place, ours, {
    type: "Q4_K_M",
    threads: 2,
    onProgress: (done, total) => {
      assert.ok(done >= most && done <= total);
      most = done;
    },
  });
  assert.equal(most, readFileSync(ours).length);
  assert.equal(report.byteLength, most);
  assert.deepEqual(modelFacts(ours), modelFacts(theirs));
});

test("a card without front matter, and one that is no table, say nothing", async () => {
  const place = writeCheckpoint(join(folder, "cards"), caseOf("qwen3"));
  for (const text of ["", "# Title\n---\na: b\n---", "---\n---", "---\n- a\n---", "---\ntags: {a: b}\n---"]) {
    writeFileSync(join(place, "README.md"), text);
    await convertModel(place, out);
    assertRecorded("converted", "qwen3 auto", fileFacts(out), text);
  }
});

test("a card of a hundred million lines is not cut into lines", {
  skip: emulated && "takes too long there",
}, () => {
  const card = `---\r\nlicense: mit\r\n---\r\n${"\n".repeat(2 ** 27)}`;
  assert.deepEqual(frontMatter(card, "README.md"), { license: "mit" });
});

test("nothing is written by a dry run, nor where something is wrong", async () => {
  rmSync(out, { force: true });
  const place = placeOf("bert");
  const before = readdirSync(folder).sort();
  const { tensors } = await convertModel(place, out, { type: "q8_0", dryRun: true });
  assert.equal(tensors.find(({ name }) => name === "token_embd.weight")?.to, "Q8_0");
  const aborted = AbortSignal.abort();
  await assert.rejects(convertModel(place, out, { signal: aborted }), { name: "AbortError" });
  const plain = { type: "f16", tensors: { "*": "Q4_K" } } as const;
  await assert.rejects(convertModel(place, out, plain), { code: "ERR_INVALID_ARG_VALUE" });
  await assert.rejects(convertModel(place, out, { onProgress: () => assert.fail("stop") }), /stop/);
  assert.deepEqual(readdirSync(folder).sort(), before);
});

test("a checkpoint that changes while it is converted is an error, and nothing is written", async () => {
  const place = writeCheckpoint(join(folder, "changing"), caseOf("qwen3"));
  const path = join(place, "model.safetensors");
  rmSync(out, { force: true });
  const onProgress = (done: number, total: number) => {
    if (done === total) writeFileSync(path, readFileSync(path).subarray(1));
  };
  await assert.rejects(convertModel(place, out, { onProgress }), { code: "ERR_GGUF_CHANGED" });
  assert.ok(!existsSync(out));
});

test("a space in a part of a merge is written as its byte", async () => {
  const place = writeCheckpoint(join(folder, "merges"), caseOf("qwen3"));
  edit("tokenizer.json", ({ model }) => {
    (model as { merges: string[][] }).merges = [
      ["t", "h"],
      [" ", " t"],
      ["a b c", "d"],
    ];
  })(place);
  await convertModel(place, out);
  const merges = openSync(out).metadata.get("tokenizer.ggml.merges");
  assert.deepEqual(merges, ["t h", "\u0120 \u0120t", "a\u0120b\u0120c d"]);
  rmSync(out);
});

test("no file of a checkpoint is replaced", async () => {
  for (const name of ["Qwen2-tiny", "bert"]) {
    const place = writeCheckpoint(join(folder, "kept"), caseOf(name));
    for (const file of readdirSync(place)) {
      const path = join(place, file);
      if (!statSync(path).isFile()) continue;
      const before = readFileSync(path);
      await assert.rejects(convertModel(place, path), { code: "ERR_GGUF_WRITE" }, file);
      assert.deepEqual(readFileSync(path), before);
    }
    await convertModel(place, join(place, "model.gguf"));
  }
});

test("a file that is missing is named", async () => {
  await assert.rejects(convertModel(join(folder, "missing"), out), /missing: cannot open the file: no such/);
});

const caseOf = (name: string): CheckpointCase => CHECKPOINTS.find((each) => each.name === name) as CheckpointCase;

/** A checkpoint with changes, which must be refused. */
async function refused(
  base: string,
  change: (place: string) => void,
  message: RegExp,
  code: string,
  options?: ConvertModelOptions,
): Promise<void> {
  const place = writeCheckpoint(join(folder, "changed"), caseOf(base));
  change(place);
  await assert.rejects(convertModel(place, out, options), { name: "GgufError", code, message });
  assert.ok(!existsSync(out));
  rmSync(place, { recursive: true });
}

const edit =
  (file: string, change: (value: Record<string, unknown>) => void) =>
  (place: string): void => {
    const value = JSON.parse(readFileSync(join(place, file), "utf8"));
    change(value);
    writeFileSync(join(place, file), JSON.stringify(value));
  };
const write =
  (file: string, content: string) =>
  (place: string): void =>
    writeFileSync(join(place, file), content);
const remove =
  (file: string) =>
  (place: string): void =>
    rmSync(join(place, file));

const unsupported = "ERR_GGUF_UNSUPPORTED_TYPE";
const invalid = "ERR_GGUF_INVALID";
const set = (name: string, value: unknown) => edit("config.json", (config) => (config[name] = value));
const inModel = (name: string) => (value: unknown) =>
  edit("tokenizer.json", ({ model }) => ((model as Record<string, unknown>)[name] = value));

test("what cannot be converted is named", async () => {
  const architecture = (name: unknown) => set("architectures", name);
  const other = architecture(["Gemma3nForCausalLM"]);
  await refused("qwen3", other, /'Gemma3nForCausalLM'; converted are .*BertModel/, unsupported);
  await refused("qwen3", architecture(undefined), /not named/, unsupported);
  await refused("qwen3", remove("config.json"), /no config\.json/, "ERR_GGUF_OPEN");
  await refused("qwen3", write("config.json", "{"), /no JSON/, invalid);
  await refused("qwen3", write("config.json", "3"), /no object/, invalid);
  const card = (yaml: string) => write("README.md", `---\n${yaml}\n---\n`);
  await refused("qwen3", card("tags:\n- [a"), /README\.md: its front matter is no YAML, line 3: /, invalid);
  const tooMuch = (yaml: string, message: RegExp) => refused("qwen3", card(yaml), message, "ERR_GGUF_RANGE");
  await tooMuch("- ".repeat(200_000), /README\.md: its front matter, line 2: more than 65536 values/);
  await tooMuch("- ".repeat(200), /line 2: too many levels of nesting/);
  await tooMuch(`a: b\n${"#".repeat(2 ** 20)}`, /line 3: more than 1048576 characters/);
  await tooMuch("a: &x [b]\nc:\n- *x", /line 4: aliases \(\*NAME\) are not read/);
  for (const each of ["a,", "[],", "{},", "a: b,", "? a,", '"a":,']) {
    await tooMuch(`a: b\nc: [${each.repeat(2 ** 16)}]`, /line 3: more than 65536 values/);
  }
  await tooMuch("- a\r".repeat(2 ** 16), /more than 65536 values/);
  await tooMuch(`a: b\ntags: [${"a,".repeat(2 ** 13 + 1)}]`, /line 3: a list of 8193 values/);
  await tooMuch(`base_model: [${"a,".repeat(2 ** 10 + 1)}]`, /line 2: a list of 1025 values/);
  await refused("qwen3", remove("tokenizer.json"), /vocabulary is missing/, "ERR_GGUF_OPEN");
  const size = (value: unknown) => set("vocab_size", value);
  await refused("qwen3", size(100), /beyond vocab_size, 100/, invalid);
  await refused("qwen3", size(2 ** 20 + 1), /vocab_size is 1048577/, invalid);
  await refused("qwen3", architecture(["BertModel"]), /vocabulary|kind bert has no such tensor/, unsupported);
  const rule = edit("tokenizer.json", (tokenizer) => (tokenizer.pre_tokenizer = { type: "Whitespace" }));
  await refused("qwen3", rule, /"Whitespace"; name it with wordRule/, unsupported);
  const gemma = "gemma-3-tiny-it";
  await refused(gemma, write("tokenizer.model", "\x0a\x7fx"), /no SentencePiece model/, invalid);
  const many = write("tokenizer.model", "\x0a\x00".repeat(2 ** 20 + 1));
  await refused(gemma, many, /tokenizer\.model: it has more than 1048576 pieces/, "ERR_GGUF_RANGE");
  await refused(gemma, size(262), /tokenizer\.model: it has 263 pieces, but vocab_size is 262/, invalid);
  const wordRule = "qwen";
  const meant = /options\.wordRule: no rule for words is called 'qwen'\. Did you mean 'qwen2'/;
  await refused("qwen3", () => undefined, meant, unsupported, { wordRule });
  await refused("qwen3", () => undefined, /cannot be quantized to Q9/, unsupported, { type: "Q9" });
});

test("files that are too large are refused before they are read, and what has too many values before it is parsed", async () => {
  const path = writeCheckpoint(join(folder, "limits"), caseOf("bge-tiny-en-v1.5"));
  const names = [
    ...["config.json", "tokenizer_config.json", "added_tokens.json", "generation_config.json"],
    ...["modules.json", "1_Pooling/config.json", "chat_template.json", "chat_template.jinja"],
    ...["merges.txt", "vocab.txt", "tokenizer.json", "tokenizer.model"],
  ];
  for (const name of names) {
    const most = name.startsWith("tokenizer.") ? 2 ** 28 : 2 ** 24;
    const kept = existsSync(join(path, name)) ? readFileSync(join(path, name)) : undefined;
    write(name, "")(path);
    truncateSync(join(path, name), most + 1);
    const { place, bytesOf } = await counted(path);
    await assert.rejects(openCheckpoint(place, { fileType: () => 0 }), (error: GgufError) => {
      const limit = `${name}: it has ${most + 1} bytes; at most ${most} are read`;
      assert.ok(error.message.endsWith(limit), error.message);
      return error.code === "ERR_GGUF_RANGE";
    });
    assert.ok(bytesOf(name) <= 2 ** 16, `${bytesOf(name)} bytes of ${name} are read`);
    if (kept === undefined) rmSync(join(path, name));
    else writeFileSync(join(path, name), kept);
  }
  write("tokenizer.json", `[${"0,".repeat(2 ** 23)}0]`)(path);
  await assert.rejects(convertModel(path, out), /tokenizer\.json: it has more than 8388608 values/);
  const vocab = Object.fromEntries(Array.from({ length: 2 ** 20 + 1 }, (_, i) => [`t${i}`, i]));
  write("tokenizer.json", JSON.stringify({ model: { vocab } }))(path);
  await assert.rejects(convertModel(path, out), /tokenizer\.json has 1048577 tokens; at most 1048576/);
});

test("experts, positions, modules and factors that do not fit are refused", async () => {
  const shape =
    (base: string, changes: Record<string, readonly number[] | undefined>) =>
    (place: string): void => {
      const tensors = Object.entries({ ...caseOf(base).tensors, ...changes }).filter(([, shape]) => shape);
      const original = { ...caseOf(base), tensors: Object.fromEntries(tensors) as CheckpointCase["tensors"] };
      writeCheckpoint(dirname(place), original);
    };
  const expert = "model.layers.0.block_sparse_moe.experts";
  const [mixtral, gemma] = ["Mixtral-8x7B-tiny", "embedding-gemma-tiny"];
  const [fused, inOne] = ["qwen3moe-fused", "model.layers.1.mlp.experts"];
  const [nomic, moe, e5] = ["nomic-embed-text-tiny", "nomic-embed-text-moe-tiny", "multilingual-e5-tiny"];
  const dense = (change: (config: Record<string, unknown>) => void) => edit("2_Dense/config.json", change);
  const modules = (path: unknown) => write("modules.json", JSON.stringify([{ type: "x.Dense", path }]));
  const factors = (value: object) =>
    edit("config.json", (config) => Object.assign(config.rope_scaling as object, value));
  const refusals: [string, (place: string) => void, RegExp, code?: string][] = [
    [mixtral, set("num_local_experts", 1e9), /layer 0 has 9 tensors of experts, not 3 of each of 1000000000/],
    [mixtral, set("num_local_experts", 0), /a layer has 0 experts: num_experts must be/],
    [mixtral, set("num_local_experts", 1.5), /a layer has 1\.5 experts/],
    [mixtral, set("num_local_experts", 1), /number 0 is missing/],
    [mixtral, set("num_local_experts", "3"), /num_local_experts is no number/],
    [mixtral, shape(mixtral, { [`${expert}.1.w2.weight`]: undefined }), /layer 0 has 8 tensors of experts/],
    [mixtral, shape(mixtral, { [`${expert}.1.w2.weight`]: [96, 64] }), /number 1 is BF16 of 64 x 96/],
    [mixtral, shape(mixtral, { [`${expert}.0.w2.weight`]: [64] }), /number 0 is F32 of 64/],
    [mixtral, shape(mixtral, { [`${expert}.0.w2.bias`]: [64] }), /no such tensor/, unsupported],
    ["roberta", set("pad_token_id", 100), /of its 40 rows, the first 101 are not used/],
    ["roberta", set("pad_token_id", -5), /the first -4 are not used/],
    ["gpt2", shape("gpt2", { "transformer.h.0.mlp.c_fc.weight": [64] }), /it has 1 dimensions, not 2/],
    [nomic, set("moe_every_n_layers", 2), /only where qkv_proj_bias is true/, unsupported],
    [moe, set("num_experts", 5), /its shape is 64 x 57\.6 x 5; it must be/],
    [moe, set("n_positions", 512), /only where n_positions is 2048 or 8192/, unsupported],
    ["modern-bert", set("classifier_pooling", "x"), /classifier_pooling is cls or mean/, unsupported],
    ["phi-3", factors({ long_factor: [1] }), /long_factor must be a list of 8 numbers/],
    ["phi-3", factors({ short_factor: Array(8).fill("1") }), /short_factor must be a list of 8 numbers/],
    ["phi-3", factors({ type: "linear" }), /scaled by su, longrope or yarn/, unsupported],
    ["phi-3", set("original_max_position_embeddings", 1), /original_max_position_embeddings above 1/],
    [fused, shape(fused, { [`${inOne}.down_proj`]: [64, 48] }), /its shape is 48 x 64; it must be .*num_experts, 3/],
    [fused, shape(fused, { [`${inOne}.gate_up_proj`]: [3, 95, 64] }), /an even number of ROWS/],
    ["olmo3", set("layer_types", ["full_attention"]), /layer_types must be a list of num_hidden_layers/],
    ["olmo3", set("num_hidden_layers", 1e9), /num_hidden_layers values, at most 65536/],
    [gemma, dense((config) => (config.activation_function = "Tanh")), /config\.json: .*is Identity/, unsupported],
    [gemma, dense((config) => (config.in_features = "64")), /in_features x out_features, not 64 x 128/],
    [gemma, modules("../2_Dense"), /from the folders 2_Dense and 3_Dense/, unsupported],
    [gemma, remove("3_Dense/model.safetensors"), /3_Dense.model\.safetensors: .*no such/, "ERR_GGUF_OPEN"],
    [e5, write("sentencepiece.bpe.model", "x"), /no SentencePiece model/],
    [e5, write("sentencepiece.bpe.model", "\x12\x02\x18\x02"), /kind unigram/, unsupported],
    ["bge-reranker-tiny", inModel("vocab")([["a"]]), /pairs of a piece and its score/],
  ];
  for (const [base, change, message, code = "ERR_GGUF_INVALID"] of refusals) {
    await refused(base, change, message, code);
  }
});

test("experts of Mixtral may be in one tensor, too", async () => {
  const apart = caseOf("Mixtral-8x7B-tiny");
  const own = Object.entries(apart.tensors).filter(([name]) => !name.includes("moe"));
  const fused = Object.entries(caseOf("qwen3moe-fused").tensors).filter(([name]) => name.includes(".mlp."));
  const place = writeCheckpoint(join(folder, "fused"), { ...apart, tensors: Object.fromEntries([...own, ...fused]) });
  const { tensors } = await convertModel(place, out, { dryRun: true });
  const names = tensors.map(({ name }) => name).filter((name) => name.startsWith("blk.1.ffn_"));
  const expected = ["down_exps", "gate_exps", "gate_inp", "norm", "up_exps"].map((name) => `blk.1.ffn_${name}.weight`);
  assert.deepEqual(names.sort(), expected);
});

test("values of other types in the files of a checkpoint are refused", async () => {
  await refused("qwen3", set("hidden_size", "64"), /config\.json: hidden_size is no number/, invalid);
  await refused("qwen3", set("rope_theta", { valueOf: 1 }), /rope_theta is no number/, invalid);
  await refused("qwen3", set("architectures", [[[]]]), /not named/, unsupported);
  await refused("qwen3", set("_name_or_path", "a\ud800"), /general\.name: .*half a surrogate/, invalid);
  const long = set("architectures", [`\x9b${"x".repeat(1e6)}`]);
  await refused("qwen3", long, /is '\\u009bx{198}'; converted are/, unsupported);
  const llama = "Tiny-Llama-3.1-80K-Instruct";
  await refused(llama, set("head_dim", 2 ** 32), /config\.json: a head has 4294967296/, invalid);
  const [merges, vocab] = [inModel("merges"), inModel("vocab")];
  for (const value of [0, "a b", [1], [["a", 1]], [["a", "b", "c"]]]) {
    await refused("qwen3", merges(value), /tokenizer\.json: model\.merges must be/, invalid);
  }
  const added = (value: unknown) => edit("tokenizer.json", (tokenizer) => (tokenizer.added_tokens = value));
  for (const value of [false, [null], [{ id: 259 }], [{ id: "map", content: "x" }]]) {
    await refused("qwen3", added(value), /tokenizer\.json: added_tokens must be/, invalid);
  }
  for (const value of [[["a", 0]], { a: "map" }, { a: -1 }]) {
    await refused("qwen3", vocab(value), /model\.vocab of tokenizer\.json must be/, invalid);
  }
  // Pieces are numbered without gaps, or memory would be taken for these.
  await refused("mistral-v0.3", vocab({ a: 0, b: 2 ** 32 }), /one token with the number 1/, invalid);
  await refused("mistral-v0.3", vocab({ a: 0, b: 0 }), /one token with the number 1/, invalid);
});

test("values of other types that are not needed are left out", async () => {
  const place = writeCheckpoint(join(folder, "others"), caseOf("qwen3"));
  write("modules.json", '[null, {"type": {"toString": 1}}, {"type": "Pooling", "path": {}}]')(place);
  const nested = '{"type":"Sequence","normalizers":['.repeat(20_000) + "]}".repeat(20_000);
  edit("tokenizer.json", (tokenizer) => {
    tokenizer.normalizer = "NESTED";
    tokenizer.post_processor = { type: "TemplateProcessing", single: "ab", pair: { length: 3 } };
  })(place);
  const path = join(place, "tokenizer.json");
  writeFileSync(path, readFileSync(path, "utf8").replace('"NESTED"', nested));
  await convertModel(place, out);
  assert.equal(openSync(out).metadata.has("qwen3.pooling_type"), false);
  rmSync(out);

  const llama = writeCheckpoint(join(folder, "others"), caseOf("Tiny-Llama-3.1-80K-Instruct"));
  write("added_tokens.json", '{"a": "length", "b": -1, "c": 1e9}')(llama);
  edit("tokenizer_config.json", (config) => {
    config.added_tokens_decoder = { 264: null, 265: { content: 5 }, length: { content: "x" } };
  })(llama);
  await convertModel(llama, out);
  const tokens = openSync(out).metadata.get("tokenizer.ggml.tokens") as string[];
  assert.deepEqual(tokens.slice(263, 266), ["[PAD263]", "[PAD264]", "[PAD265]"]);
  rmSync(out);
});

test("checkpoints with any values in their JSON are converted, or refused with an error of the package", async () => {
  const OTHERS: readonly unknown[] = [
    ...[null, true, 0, -1, 1.5, 2 ** 32, "", "x", "length", [], [[]], ["a", "b"], [null], {}],
    ...[{ toString: 1, valueOf: 1 }, { length: 2 }, { id: 1, content: "x" }, { type: "Sequence" }],
  ];
  /** One value of those that are in another becomes `other`. */
  const changed = (value: unknown, at: number, other: unknown): unknown => {
    let left = at;
    const walk = (each: unknown): unknown => {
      if (left-- === 0) return other;
      if (typeof each !== "object" || each === null) return each;
      if (Array.isArray(each)) return each.map(walk);
      return Object.fromEntries(Object.entries(each).map(([name, inner]) => [name, walk(inner)]));
    };
    return walk(value);
  };
  const bases = [
    ...["two-labels", "Qwen2-tiny", "qwen2-embedding", "mistral-v0.3", "Tiny-Llama-3.1-80K-Instruct"],
    ...["bge-reranker-tiny", "nomic-embed-text-tiny", "modern-bert", "embedding-gemma-tiny", "roberta", "olmo3"],
    ...["Mixtral-8x7B-tiny", "qwen2moe", "qwen3moe-fused", "nomic-embed-text-moe-tiny", "phi-3", "granite", "gpt2"],
  ];
  const copies = bases.map((name) => writeCheckpoint(join(folder, "values"), caseOf(name)));
  const files = copies.flatMap((place) =>
    readdirSync(place, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".json") && !name.includes("safetensors"))
      .map((name) => ({ place, path: join(place, name), text: readFileSync(join(place, name), "utf8") })),
  );
  const change = fc.record({
    file: fc.constantFrom(...files),
    // The beginning of a file has most of what is no list of tokens; its end is the merges.
    at: fc.oneof(fc.nat(40), fc.nat(700)),
    other: fc.constantFrom(...OTHERS),
  });
  await fc.assert(
    fc.asyncProperty(change, async ({ file: { place, path, text }, at, other }) => {
      writeFileSync(path, JSON.stringify(changed(JSON.parse(text), at, other)));
      try {
        await convertModel(place, out, { dryRun: true });
      } catch (error) {
        assert.ok(error instanceof GgufError, (error as Error).stack);
      } finally {
        writeFileSync(path, text);
      }
    }),
    { numRuns: 300 },
  );
});

test("the command converts, and diff compares a checkpoint with its GGUF file", async () => {
  const place = placeOf("qwen3");
  const { status, stdout, stderr } = await run(["convert", place, "command.gguf", "--type", "auto"]);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /command\.gguf: /);
  const same = await run(["diff", place, "command.gguf"]);
  assert.match(same.stdout, /no differences/, same.stderr);
  const changed = await run(["set", "command.gguf", "general.name", "Other", "-o", "other.gguf"]);
  assert.equal(changed.status, 0, changed.stderr);
  assert.match((await run(["diff", "other.gguf", place])).stdout, /no differences/);
  const dry = await run(["convert", place, "dry.gguf", "--type", "Q4_K_M", "--dry-run", "--json"]);
  assert.equal(JSON.parse(dry.stdout).type, "Q4_K_M");
  assert.ok(!existsSync(join(folder, "dry.gguf")));
  const wrong = await run(["convert", place, "x.gguf", "--type", "Q9"]);
  assert.equal(wrong.status, 2);
  const rule = await run(["convert", place, "x.gguf", "--word-rule", "qwen"]);
  assert.equal(rule.status, 2);
  assert.match(rule.stderr, /--word-rule: no rule for words is called 'qwen'\. Did you mean 'qwen2'\? docs/);
});

describe("a checkpoint beside a GGUF file", () => {
  const original = caseOf("qwen3");
  const copyOf = (name: string, change: (place: string) => void = () => undefined): string => {
    const place = writeCheckpoint(join(folder, name), original);
    change(place);
    return place;
  };
  /** What is in `place`, for who has the key; `refusing` is refused to everybody. */
  const served = async (place: string, refusing = "") => {
    const { url, requests } = await serve((request, response) => {
      const { pathname } = new URL(request.url ?? "", "http://x");
      const path = join(place, pathname);
      if (request.headers["x-key"] !== "1" && !request.url?.includes("sig=")) response.writeHead(401).end();
      else if (pathname === refusing) response.writeHead(403).end();
      else if (!existsSync(path)) response.writeHead(404).end();
      else answerRange(request, response, readFileSync(path));
    });
    return { url: new URL("/", url).href, requests };
  };
  const KEY = ["-H", "X-Key: 1"];

  for (const type of ["auto", "f32", "q8_0", "Q4_K_M"]) {
    test(`verify --from finds what it was converted to as ${type}`, async () => {
      const place = copyOf("verified");
      await convertModel(place, out, { type });
      const { status, stdout, stderr } = await run(["verify", out, "--from", place]);
      assert.equal(status, 0, stdout + stderr);
      assert.match(stdout, /^ok .* tensors made of/);
      assert.equal((await run(["verify", out, "--from", join(place, "model.safetensors")])).status, 0);
      assert.equal(stderr, "");
    });
  }
  test("on a server, every request has the header", async () => {
    const place = copyOf("served");
    await convertModel(place, out, { name: "Served" });
    const { url, requests } = await served(place);
    for (const at of [url, `${url}model.safetensors`, `${url}?a=b/c`]) {
      const same = await run(["diff", ...KEY, at, out]);
      assert.match(same.stdout, /no differences/, same.stderr);
      assert.equal((await run(["verify", ...KEY, out, "--from", at])).status, 0);
      const again = ["again.gguf", ..."--name Served --force".split(" ")];
      const { status, stderr } = await run(["convert", ...KEY, at, ...again]);
      assert.equal(status, 0, stderr);
      assert.deepEqual(modelFacts(join(folder, "again.gguf")), modelFacts(out));
    }
    assert.ok(requests.every(({ headers }) => headers["x-key"] === "1"));
    assert.ok(requests.some(({ url }) => url === "/config.json?a=b/c"));
    const { url: folderUrl } = await served(writeCheckpoint(join(folder, "served-shards"), caseOf("Qwen2-tiny")));
    await convertModel(folderUrl, out, { headers: { "x-key": "1" } });
  });
  test("what cannot be read is an error", async () => {
    const place = copyOf("unreadable");
    await convertModel(place, out);
    for (const refusing of ["/config.json", "/tokenizer.json", "/generation_config.json"]) {
      const { url } = await served(place, refusing);
      for (const args of [
        ["diff", ...KEY, url, out],
        ["diff", ...KEY, out, `${url}model.safetensors`],
        ["verify", ...KEY, out, "--from", url],
      ]) {
        const { status, stdout, stderr } = await run(args);
        assert.deepEqual([status, stdout], [1, ""]);
        assert.match(stderr, new RegExp(`${refusing}: the server refuses access`));
      }
    }
    for (const [name, change, message] of [
      ["no-config", remove("config.json"), /there is no config\.json/],
      ["bad-config", write("config.json", "{"), /it is no JSON/],
      ["no-vocabulary", remove("tokenizer.json"), /vocabulary is missing/],
    ] as const) {
      const { status, stdout, stderr } = await run(["diff", copyOf(name, change), out]);
      assert.deepEqual([status, stdout], [1, ""]);
      assert.match(stderr, message);
    }
  });
  test("one that is not converted is compared as it is, which is said", async () => {
    const other = edit("config.json", (config) => (config.architectures = ["OtherForCausalLM"]));
    const place = copyOf("other", other);
    await convertModel(copyOf("known"), out);
    const bare = copyOf("bare", remove("config.json"));
    for (const [from, message] of [
      [place, /compared as it is, not converted: .*architecture is 'OtherForCausalLM'/],
      [join(bare, "model.safetensors"), /compared as it is, not converted: .*no config\.json/],
    ] as const) {
      for (const args of [
        ["diff", from, out],
        ["verify", out, "--from", from],
      ]) {
        const { status, stdout, stderr } = await run(args);
        assert.equal(status, 1);
        assert.match(stdout, /model\.embed_tokens\.weight|not made of/);
        assert.match(stderr, message);
      }
    }
  });
  test("a URL with a signature: what is beside it is asked for with the same", async () => {
    const place = copyOf("signed");
    const { url, requests } = await served(place);
    await convertModel(`${url}model.safetensors?sig=a/b&x=1`, out, { name: "Signed" });
    const remote = readFileSync(out);
    await convertModel(place, out, { name: "Signed" });
    assert.ok(remote.equals(readFileSync(out)));
    const paths = requests.map((request) => request.url ?? "");
    assert.ok(paths.includes("/config.json?sig=a/b&x=1"));
    const others = paths.filter((path) => !path.endsWith("?sig=a/b&x=1"));
    assert.deepEqual(others, []);
  });
});

describe("a checkpoint of a gigabyte", () => {
  const place = writeCheckpoint(join(folder, "large"), caseOf("qwen3"));
  const matrix = (columns: number, rows: number) =>
    ({ dtype: "BF16", shape: [rows, columns], byteLength: 2 * columns * rows }) as const;
  const layers = Array.from({ length: 4 }, (_, layer) => `model.layers.${layer}.mlp.up_proj.weight`);
  const sparse = writeSparseSafetensors(join(place, "model.safetensors"), {
    "model.embed_tokens.weight": matrix(2048, 2 ** 17),
    ...Object.fromEntries(layers.map((name) => [name, matrix(4096, 2 ** 14)])),
  });
  const skip =
    sparse ||
    (emulated && "an emulated processor takes minutes for this") ||
    (sanitized && "sanitizers take memory of their own");
  test("takes less than half of that in memory", { skip }, async (context) => {
    const program = `
      const { convertModel } = require(${JSON.stringify(projectRoot)});
      const [input, output] = ${JSON.stringify([place, out])};
      convertModel(input, output, { type: "q8_0" }).then(({ byteLength }) => {
        console.log(JSON.stringify([byteLength, process.resourceUsage().maxRSS * 1024]));
      });`;
    const line = await lineOf(["-e", program], { limit: 600_000 });
    rmSync(out);
    const [byteLength, most] = JSON.parse(line) as [number, number];
    context.diagnostic(`${most} bytes`);
    assert.ok(byteLength > 2 ** 29, `${byteLength} bytes are written`);
    assert.ok(most < 500e6, `${most} bytes`);
  });
});

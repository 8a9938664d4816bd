/**
 * The types that mixes choose, compared with those of llama.cpp: test/fixtures/mixes.json has their hashes, and where llama.cpp
 * is installed, what it says now is compared, too. Then `GGUF_NATIVE_UPDATE_GOLDEN=1 npm test -- mixes` writes the file again.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { type GgmlType, type GgufFile, ggmlTypes, openSync } from "gguf-native";
import { fileTypeName } from "#dist/file/file-types";
import { chooseTypes, modelFacts } from "#dist/quantize-model/choose-types";
import { MIXES, type Mix } from "#dist/quantize-model/mixes";
import { llamaQuantize, noLlamaCpp } from "../support/libllama";
import { type MixModel, mixModels, mixModelWriter } from "../support/mix-models";
import { temporaryFolder } from "../support/paths";
import { assertRecorded, hashOf, writeRecorded } from "../support/recorded";

const isUpdate = process.env.GGUF_NATIVE_UPDATE_GOLDEN === "1";
const names = Object.keys(MIXES) as (keyof typeof MIXES)[];
const folder = temporaryFolder();

async function open(model: MixModel): Promise<{ path: string; file: GgufFile }> {
  const path = join(folder, "model.gguf");
  await mixModelWriter(model).write(path);
  return { path, file: openSync(path) };
}

/** Tensors of one name follow each other, from layer to layer, so that most types repeat. */
function packed(file: GgufFile, types: ReadonlyMap<string, string>): string {
  const kind = (name: string): string => name.replace(/\d+/, "*");
  const kinds = [...new Set([...file.tensors.keys()].map(kind))];
  const ordered = [...file.tensors.keys()].sort((a, b) => kinds.indexOf(kind(a)) - kinds.indexOf(kind(b)));
  const runs: [string, number][] = [];
  for (const name of ordered) {
    const type = types.get(name) as string;
    const last = runs.at(-1);
    if (last?.[0] === type) last[1]++;
    else runs.push([type, 1]);
  }
  return runs.map(([type, count]) => (count === 1 ? type : `${type}*${count}`)).join(" ");
}

function ours(file: GgufFile, { name, hasImportance }: Case): Map<string, string> {
  const tensors = [...file.tensors.values()];
  const choices = chooseTypes(tensors, MIXES[name], modelFacts(file.metadata, hasImportance));
  return new Map(tensors.map(({ name, type }, i) => [name, choices[i]?.type ?? type]));
}

/** What llama.cpp refuses: rows that are not whole blocks, of Q1_0. Here they get F16, as with every other type, and are not compared. */
const NO_FALLBACK = "no tensor type fallback is defined for type";

const importance = { "some.weight": Float32Array.of(1) };

async function theirs(
  path: string,
  mix: Mix,
  hasImportance: boolean,
  types?: Record<string, GgmlType>,
): Promise<Map<string, string> | undefined> {
  const numbers = types && Object.entries(types).map(([key, type]) => [`^${key}$`, ggmlTypes[type].id]);
  const { isDone, log } = await llamaQuantize(path, join(folder, "never.gguf"), {
    fileType: mix.fileType,
    dryRun: true,
    ...(hasImportance ? { importance } : {}),
    ...(numbers === undefined ? {} : { types: Object.fromEntries(numbers) }),
  });
  if (!isDone && log.includes(NO_FALLBACK)) return undefined;
  assert.ok(isDone, log);
  const line = /^\[ *\d+\/ *\d+\] +(\S+) +- \[[^\]]*\], type = +(\w+), size = .*?MiB(?: -> +\S+ MiB \((\w+)\))?$/gm;
  // ggml has the names of some types in lower case.
  return new Map(Array.from(log.matchAll(line), ([, name = "", from = "", to = from]) => [name, to.toUpperCase()]));
}

function inOrderOf(tensors: readonly { name: string }[]) {
  const names = tensors.map(({ name }) => name);
  return ([a]: [string, string], [b]: [string, string]): number => names.indexOf(a) - names.indexOf(b);
}

const cases = names.flatMap((name) => [false, true].map((hasImportance) => ({ name, hasImportance })));
type Case = (typeof cases)[number];
const key = ({ name, hasImportance }: Case): string => (hasImportance ? `${name} with importance` : name);

describe("mixes", () => {
  const recorded: Record<string, string> = {};

  for (const [label, model] of Object.entries(mixModels)) {
    test(`llama.cpp chooses what is recorded: ${label}`, { skip: noLlamaCpp }, async () => {
      const { path, file } = await open(model);
      using _ = file;
      const found: Record<string, string> = {};
      for (const each of cases) {
        const types = await theirs(path, MIXES[each.name], each.hasImportance);
        found[key(each)] = types === undefined ? packed(file, ours(file, each)) : packed(file, types);
      }
      recorded[label] = hashOf(found);
      if (!isUpdate) assertRecorded("mixes", label, found, "llama.cpp");
    });

    test(`the same types: ${label}`, async () => {
      const { file } = await open(model);
      using _ = file;
      const found = cases.map((each) => [key(each), packed(file, ours(file, each))]);
      assertRecorded("mixes", label, Object.fromEntries(found));
    });
  }

  test("types that are named are not counted", { skip: noLlamaCpp }, async () => {
    const { path, file } = await open(mixModels["llama, 32 layers"] as MixModel);
    using _ = file;
    const types: Record<string, GgmlType> = {
      "blk.0.attn_v.weight": "Q8_0",
      "blk.3.ffn_down.weight": "IQ4_XS",
      "output.weight": "Q4_0",
      "output_norm.weight": "Q8_0",
    };
    const tensors = [...file.tensors.values()];
    const facts = modelFacts(file.metadata, false);
    const choices = chooseTypes(tensors, MIXES.Q4_K_M, facts, (name) => types[name]);
    const found = new Map(tensors.map(({ name, type }, i) => [name, choices[i]?.type ?? type]));
    assert.deepEqual(
      found,
      new Map([...((await theirs(path, MIXES.Q4_K_M, false, types)) ?? [])].sort(inOrderOf(tensors))),
    );
    assert.equal(found.get("blk.1.attn_v.weight"), "Q6_K");
  });

  test("a layer that a name does not tell", () => {
    const tensors = [{ name: "v.ffn_down.weight", type: "F16", shape: [256, 2] }];
    const facts = { architecture: "llama", layers: 4, experts: 2, sharedHeads: 1, hasImportance: false };
    const invalid = { code: "ERR_GGUF_INVALID", message: /^tensor 'v.ffn_down.weight': its name should say/ };
    assert.throws(() => chooseTypes(tensors, MIXES.Q4_K_M, facts), invalid);
    assert.deepEqual(
      chooseTypes(tensors, MIXES.Q4_K_M, facts, () => "Q4_0").map(({ type }) => type),
      ["Q4_0"],
    );
  });

  test("GLM 5 Next keeps what is small, and projects queries with 8 bits", () => {
    const facts = { architecture: "glm5-next", layers: 1, experts: 0, sharedHeads: 0, hasImportance: false };
    const typeOf = (part: string) =>
      chooseTypes([{ name: `blk.0.${part}.weight`, type: "F16", shape: [256, 2] }], MIXES.Q2_K, facts)[0]?.type;
    assert.deepEqual(["attn_q_a", "nextn.eh_proj", "attn_kv_b"].map(typeOf), ["Q8_0", "Q8_0", "Q3_K"]);
    assert.deepEqual(["hc_attn_fn", "indexer.attn_q_b", "ssm_beta", "attn_v_b"].map(typeOf), Array(4).fill(undefined));
  });

  test("rows that are no whole blocks of anything get F16", () => {
    const facts = { architecture: "", layers: 0, experts: 0, sharedHeads: 0, hasImportance: false };
    const [choice] = chooseTypes([{ name: "a.weight", type: "F32", shape: [48, 2] }], MIXES.Q1_0, facts);
    assert.deepEqual(choice, { type: "F16", wanted: "Q1_0", needsImportance: false, isFree: true });
  });

  after(() => {
    if (isUpdate) writeRecorded("mixes", recorded);
  });
});

test("every file type has its name", () => {
  const fileTypes = [
    ...["F32", "F16", "Q4_0", "Q4_1", "Q4_1, some F16", "", "", "Q8_0", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S"],
    ...["Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ2_XXS", "IQ2_XS", "Q2_K_S"],
    ...["IQ3_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ3_M", "IQ2_S", "IQ2_M", "IQ4_XS", "IQ1_M"],
    ...["BF16", "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0", "TQ2_0", "MXFP4_MOE", "NVFP4", "Q1_0", "Q2_0", ""],
  ];
  for (const [number, name] of fileTypes.entries()) {
    assert.equal(fileTypeName(number) ?? "", name);
    assert.equal(fileTypeName(number + 1024) ?? "", name && `${name} (guessed)`);
  }
  for (const name of names) assert.equal(fileTypeName(MIXES[name].fileType), name);
});

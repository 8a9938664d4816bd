/** Every command on every real model; what gguf-py finds in the same files, and in those that commands write. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { before, describe, test } from "node:test";
import { convertModel, type GgufFile, openSync } from "gguf-native";
import { at, folder, json, output, run } from "../support/cli";
import { sha256 } from "../support/model-facts";
import { ask, serveSite } from "../support/view-site";
import { GEMMA3, MINILM, modelPath, needsModel, type PythonModel, readWithPython, SMOLLM2 } from "./support";

interface RealModel {
  needs: string;
  /** Where the GGUF file is; made first if it must be. */
  path: () => Promise<string>;
  tensors: number;
  parameters: number;
  /** A text, and its tokens without those that begin a text; none where the vocabulary is only listed. */
  tokens?: [text: string, tokens: number[]];
}

const MODELS: Record<string, RealModel> = {
  "SmolLM2-135M-Instruct, Q4_1": {
    needs: SMOLLM2,
    path: async () => modelPath(SMOLLM2),
    tensors: 272,
    parameters: 134_515_008,
    tokens: ["Hello world", [19556, 905]],
  },
  "Gemma 3 270M, Q4_K_M": {
    needs: GEMMA3,
    path: async () => modelPath(GEMMA3),
    tensors: 236,
    parameters: 268_098_176,
    tokens: ["Hello world", [2, 9259, 1902]],
  },
  "all-MiniLM-L6-v2, made from safetensors": {
    needs: MINILM,
    path: async () => {
      // Its rows are no whole blocks of Q4_K, so that this is a file of many types.
      await convertModel(modelPath(MINILM), at("minilm.gguf"), { type: "Q4_K_M" });
      return at("minilm.gguf");
    },
    tensors: 101,
    parameters: 22_565_376,
  },
};

/** Asserts that metadata and tensors are what gguf-py found. */
function assertSame(file: GgufFile, python: PythonModel): void {
  assert.deepEqual(
    [...file.metadata.keys()],
    python.metadata.map(([key]) => key),
  );
  for (const [key, types, expected] of python.metadata) {
    const declared = file.metadata.typeOf(key)!;
    assert.deepEqual(
      declared.type === "array" ? ["array", declared.elementType] : [declared.type],
      types.map((type) => type.toLowerCase()),
      key,
    );
    const value = file.metadata.get(key);
    if (Array.isArray(expected)) {
      const array = value as ArrayLike<unknown>;
      assert.equal(array.length, expected.length, key);
      const other = expected.findIndex((element, i) => element !== array[i]);
      if (other !== -1) assert.fail(`${key}[${other}]: ${array[other]} is not ${expected[other]}`);
    } else {
      assert.equal(value, expected, key);
    }
  }
  assert.deepEqual(
    [...file.tensors.values()].map(({ name, type, shape, offset }) => [name, type, [...shape], offset]),
    python.tensors.map(({ name, type, shape, offset }) => [name, type, shape, offset]),
  );
}

for (const [name, model] of Object.entries(MODELS)) {
  describe(name, needsModel(model.needs), () => {
    let path = "";
    const stem = basename(model.needs).replace(/\.\w+$/, "");
    before(async () => {
      path = await model.path();
    });

    test("metadata, tensors and numbers are gguf-py's", (context) => {
      const python = readWithPython(path, { values: true });
      if (typeof python === "string") return context.skip(python);
      using file = openSync(path);
      assertSame(file, python);
      for (const { name, bytes, values } of python.tensors) {
        const tensor = file.tensor(name);
        assert.equal(sha256(tensor.bytes()), bytes, name);
        const { buffer, byteOffset, byteLength } = tensor.dequantizeSync();
        assert.equal(sha256(new Uint8Array(buffer, byteOffset, byteLength)), values, `${name} (${tensor.type})`);
      }
    });

    test("inspect, with and without --memory", async () => {
      const { tensorCount, parameterCount, byteLength } = await json(["inspect", path]);
      const found = [tensorCount, parameterCount, byteLength];
      assert.deepEqual(found, [model.tensors, model.parameters, statSync(path).size]);
      assert.match(await output("inspect", path), new RegExp(`in ${model.tensors} tensors, [.0-9]+ bits each\n`));
      const { memory } = await json(["inspect", path, "--memory"]);
      using file = openSync(path);
      const bytes = [...file.tensors.values()].reduce((sum, tensor) => sum + tensor.byteLength, 0);
      assert.equal(memory.weights.bytes, bytes);
    });

    test("tokens", async () => {
      const { tokenCount } = await json(["tokens", path, "--limit", "3"]);
      using file = openSync(path);
      assert.equal(tokenCount, file.metadata.strings("tokenizer.ggml.tokens")!.length);
      if (model.tokens === undefined) return;
      const [text, expected] = model.tokens;
      const { tokens } = await json(["tokens", path, text]);
      assert.deepEqual(tokens, expected);
      const decoded = await json(["tokens", path, "--decode", ...expected.map(String)]);
      assert.equal(decoded.text, text);
    });

    test("stats of every tensor", async () => {
      const { tensors } = await json(["stats", path, "*"]);
      assert.equal(tensors.length, model.tensors);
      const elements = tensors.reduce((sum: number, tensor: { elements: number }) => sum + tensor.elements, 0);
      assert.equal(elements, model.parameters);
      using file = openSync(path);
      for (const { name, nan, min, max, mean } of tensors) {
        const tensor = file.tensor(name);
        if (tensor.elementCount > 2 ** 20) continue; // plain JavaScript is enough for the others
        const values = tensor.dequantizeSync();
        const sum = values.reduce((a, b) => a + b, 0);
        assert.equal(nan, 0);
        const wanted = values.reduce((a, b) => Math.min(a, b));
        assert.equal(min, wanted);
        assert.equal(
          max,
          values.reduce((a, b) => Math.max(a, b)),
        );
        assert.ok(Math.abs(mean - sum / values.length) < 1e-7, name);
      }
    });

    test("verify", async () => {
      const { files } = await json(["verify", path]);
      const shown = [files[0].ok, files[0].tensors, files[0].values, files[0].findings];
      assert.deepEqual(shown, [true, model.tensors, model.parameters, []]);
    });

    test("hash, and hash --check", async () => {
      const { files } = await json(["hash", path]);
      using file = openSync(path);
      for (const { name, sha256: digest } of files[0].tensors) {
        assert.equal(digest, sha256(file.tensor(name).bytes()), name);
      }
      writeFileSync(at("list"), await output("hash", path));
      assert.equal((await run(["hash", "--check", at("list")])).status, 0);
    });

    test("set, and what diff says of it", async () => {
      const changed = at(`${stem}-set.gguf`);
      await run(["set", path, "general.name", "Another name", "-o", changed]);
      const { same, metadata, tensors } = await json(["diff", path, changed], 1);
      assert.deepEqual([same, metadata.length, tensors], [false, 1, []]);
      const python = readWithPython(changed);
      if (typeof python === "string") return;
      assert.equal(python.metadata.find(([key]) => key === "general.name")![2], "Another name");
      using file = openSync(changed);
      assertSame(file, python);
    });

    test("split and merge give the same model", async () => {
      const prefix = at(`${stem}-part`);
      assert.equal((await run(["split", path, prefix, "--max-tensors", "100"])).status, 0);
      const parts = readdirSync(folder).filter((file) => file.startsWith(`${stem}-part-0000`));
      assert.equal(parts.length, Math.ceil(model.tensors / 100));
      const merged = at(`${stem}-merged.gguf`);
      assert.equal((await run(["merge", at(parts.sort()[0]!), merged])).status, 0);
      const whole = async (file: string): Promise<string> => (await json(["hash", file])).files[0].sha256;
      assert.equal(await whole(merged), await whole(path));
      assert.equal(await whole(at(parts[0]!)), await whole(path));
      assert.equal((await json(["diff", path, merged])).same, true);
    });

    test("dequantize", async () => {
      using file = openSync(path);
      const tensor = [...file.tensors.values()].find(({ type }) => type !== "F32")!;
      const out = at(`${stem}.bin`);
      assert.equal((await run(["dequantize", path, tensor.name, "-o", out])).status, 0);
      const { buffer, byteOffset, byteLength } = tensor.dequantizeSync();
      assert.ok(readFileSync(out).equals(new Uint8Array(buffer, byteOffset, byteLength)));
    });

    test("view hands its bytes to the page", async () => {
      const site = await serveSite("<!doctype html>", [[path]]);
      const { status, body } = await ask(site, `${site.base}model/0/${basename(path)}`, {
        range: "bytes=4096-69631",
      });
      assert.equal(status, 206);
      assert.ok(body.equals(readFileSync(path).subarray(4096, 69632)));
    });
  });
}

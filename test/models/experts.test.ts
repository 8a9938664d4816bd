/** Small mixtures of experts and LoRA adapters in the llama example, against llama.cpp. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openSync } from "gguf-native";
import { Llama } from "../../examples/llama/model";
import { LlamaCpp, noLlamaCpp } from "../support/libllama";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { MIXTURES, SMALL, type SmallModel, smallAdapter, smallModel, tensorsOf } from "../support/small-llama";

const PROMPT = [1, 4, 0, 3, 3, 2, 1, 0, 2, 4, 4, 1];
/** Logits may differ by so much of their root mean square: llama.cpp rounds more in its attention to binary16. */
const TOLERANCE = 0.005;

const folder = temporaryFolder();
const rootMeanSquare = (numbers: Float32Array): number =>
  Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length);

for (const [name, model] of Object.entries<SmallModel>({ llama: {}, ...MIXTURES })) {
  const output = tensorsOf(new Random(3))("output.weight", SMALL.width, SMALL.tokens);
  const path = join(folder, `${name}.gguf`);
  writeFileSync(path, smallModel({ ...model, tensors: [...(model.tensors ?? []), output] }));
  for (const scales of [[], [0.5, -0.25]]) {
    test(`${name}, ${scales.length} adapters`, { skip: noLlamaCpp }, async (context) => {
      using file = openSync(path);
      const matrices = [...file.tensors.values()].filter(({ shape }) => shape.length > 1);
      const adapters = scales.map((scale, i) => {
        const shapes = matrices.map(({ name, shape }) => [name.replace(".weight", ""), ...shape] as const);
        const place = join(folder, `${i}.gguf`);
        writeFileSync(place, smallAdapter(model.architecture ?? "llama", 3 * i, shapes));
        return { path: place, scale };
      });
      const theirs = (await LlamaCpp.load(path, 16, { adapters })).read(PROMPT);
      const ours = Llama.load(file, {
        activations: "f32",
        adapters: adapters.map(({ path, scale }) => ({ file: openSync(path), scale })),
      });
      let most = 0;
      ours.forwardEach(PROMPT, ours.createCache(16), 0, (i, logits) => {
        const expected = theirs.at(i);
        const error = rootMeanSquare(logits.map((x, j) => x - expected[j]!)) / rootMeanSquare(expected);
        most = Math.max(most, error);
      });
      context.diagnostic(`logits differ by ${most.toExponential(1)} at most`);
      assert.ok(most < TOLERANCE, `${most}`);
    });
  }
}

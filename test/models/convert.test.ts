/** A real checkpoint as a GGUF file, beside what llama.cpp's converter makes of it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { convertModel } from "gguf-native";
import { modelFacts } from "../support/model-facts";
import { projectRoot, temporaryFolder } from "../support/paths";
import { MINILM, modelPath, needsModel } from "./support";

test(
  "all-MiniLM-L6-v2 as f16: every key and every byte of llama.cpp's converter",
  needsModel(MINILM),
  async () => {
    const out = join(temporaryFolder(), "out.gguf");
    await convertModel(modelPath(MINILM), out, { type: "f16" });
    const expected = JSON.parse(
      readFileSync(join(projectRoot, "test", "fixtures", "converted.json"), "utf8"),
    );
    assert.deepEqual(modelFacts(out), expected["all-MiniLM-L6-v2 f16"]);
  },
);

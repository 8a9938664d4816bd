/** A real checkpoint as a GGUF file, beside what llama.cpp's converter makes of it. */
import { join } from "node:path";
import { test } from "node:test";
import { convertModel } from "gguf-native";
import { fileFacts } from "../support/model-facts";
import { temporaryFolder } from "../support/paths";
import { assertRecorded } from "../support/recorded";
import { MINILM, modelPath, needsModel } from "./support";

test("all-MiniLM-L6-v2 as f16: every key and every byte of llama.cpp's converter", needsModel(MINILM), async () => {
  const out = join(temporaryFolder(), "out.gguf");
  await convertModel(modelPath(MINILM), out, { type: "f16" });
  assertRecorded("converted", "all-MiniLM-L6-v2 f16", fileFacts(out));
});

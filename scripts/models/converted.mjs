// Writes test/fixtures/converted.json: hashes of what llama.cpp's converter makes of the checkpoints of the tests, and of
// all-MiniLM-L6-v2, which `npm run models` downloads. All that was hashed is in build/recorded/converted/*.llama.cpp.json: where
// a test fails, it writes a file beside that to compare.
// node scripts/models/converted.mjs PYTHON CONVERTER_FOLDER
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildAll } from "../lib/build.mjs";
import { root } from "../lib/paths.mjs";
import { modelsFolder } from "./folder.mjs";

const [python, converter] = process.argv.slice(2);
if (converter === undefined) {
  console.error("usage: node scripts/models/converted.mjs PYTHON CONVERTER_FOLDER");
  process.exit(2);
}
buildAll();
const require = createRequire(import.meta.url);
const { CHECKPOINTS, writeCheckpoint } = require("../../build/test/support/checkpoints.js");
const { fileFacts } = require("../../build/test/support/model-facts.js");
const { hashOf, writeDetails, writeRecorded } = require("../../build/test/support/recorded.js");
const folder = mkdtempSync(join(tmpdir(), "gguf-native-converted-"));
const hashes = {};
try {
  const checkpoints = CHECKPOINTS.map((checkpoint) => ({
    ...checkpoint,
    place: writeCheckpoint(folder, checkpoint),
  }));
  const miniLm = "all-MiniLM-L6-v2";
  checkpoints.push({ name: miniLm, place: join(modelsFolder, miniLm), types: ["f16"] });
  const jobs = checkpoints.flatMap(({ name, place, types, wordRule }) =>
    types.map((type) => ({
      name: `${name} ${type}`,
      job: [place, join(folder, `${name}-${type}.gguf`), type, wordRule ?? null],
    })),
  );
  const script = join(root, "scripts", "models", "converted.py");
  const list = JSON.stringify(jobs.map(({ job }) => job));
  execFileSync(python, [script, converter, list], { stdio: ["ignore", "ignore", "inherit"] });
  for (const { name, job } of jobs) {
    const facts = fileFacts(job[1]);
    hashes[name] = hashOf(facts);
    writeDetails("converted", name, facts, "llama.cpp");
  }
} finally {
  rmSync(folder, { recursive: true });
}
writeRecorded("converted", hashes);

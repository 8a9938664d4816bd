// `npm run test:models`: the tests of test/models, on the models of `npm run models`. Without a model, its tests are
// skipped and say so. `npm run test:models -- llama` runs only the files with such a name.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { buildPackage, buildTests, checkAddon, runNode } from "../build.mjs";
import { fail } from "../commands.mjs";
import { root } from "../paths.mjs";
import { modelsFolder, pythonFolder } from "./folder.mjs";

const names = process.argv.slice(2);
const files = readdirSync(join(root, "test", "models"))
  .filter(
    (file) => file.endsWith(".test.ts") && (names.length === 0 || names.some((name) => file.includes(name))),
  )
  .map((file) => join("build", "test", "models", file.replace(/\.ts$/, ".js")));
if (files.length === 0) fail(`no test file is called ${names.join(" or ")}`);

buildPackage();
checkAddon();
buildTests();
Object.assign(process.env, { GGUF_NATIVE_MODELS: modelsFolder, PYTHONPATH: pythonFolder });
// gguf-py has one thread, so that two files at once take less time than one after the other.
runNode("--expose-gc", "--test", "--test-reporter=spec", "--test-concurrency=2", ...files);

// `npm run test:models`: the tests of test/models, on the models of `npm run models`. Without a model, its tests are
// skipped and say so. `npm run test:models -- llama` runs only the files with such a name.
import { buildAll, checkAddon, runNode } from "../lib/build.mjs";
import { testFiles } from "../lib/test-files.mjs";
import { modelsFolder, pythonFolder } from "./folder.mjs";

const files = testFiles(process.argv.slice(2), { folder: "models" });

buildAll();
checkAddon();
Object.assign(process.env, { GGUF_NATIVE_MODELS: modelsFolder, PYTHONPATH: pythonFolder });
// gguf-py has one thread, so that two files at once take less time than one after the other.
runNode("--expose-gc", "--test", "--test-reporter=spec", "--test-concurrency=2", ...files);

// Runs gguf-native/reference and gguf-native/wasm in headless Chromium, as `npm test` does too where Chromium is installed; here it must be.
import { buildAll, runNode } from "../lib/build.mjs";
import { need } from "../lib/commands.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";

need(["chromium", "chromium"]);
buildAll();
runNode(...testArguments(testFiles(["browser", "wasm-entry"])));

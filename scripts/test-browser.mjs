// Runs gguf-native/reference and gguf-native/wasm in headless Chromium, as `npm test` does too where Chromium is installed; here it must be.
import { buildPackage, buildTests, runNode } from "./build.mjs";
import { need } from "./commands.mjs";
import { testArguments, testFiles } from "./test-files.mjs";

need(["chromium", "chromium"]);
buildPackage();
buildTests();
runNode(...testArguments(testFiles(["browser", "wasm-entry"])));

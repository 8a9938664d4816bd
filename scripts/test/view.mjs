// `npm run test:view`: builds the page to look at models, and tests it in headless Chromium, as `npm test` does too where
// both are there; here they must be. Needs the module of `npm run build:wasm`.
import { buildAll, runNode } from "../lib/build.mjs";
import { need } from "../lib/commands.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";

need(["chromium", "chromium"]);
buildAll();
runNode("scripts/build/view.mjs");
runNode(...testArguments(testFiles(["view-"])));

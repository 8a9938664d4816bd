// Builds and runs the TypeScript tests. `npm test -- metadata cli` runs only the files with such a name. A first argument asks for
// other tests, or for the same in another way:
//
//   --scale        those of test/scale, with huge files: minutes, and up to 4 GiB of memory (npm run test:scale)
//   --browser      gguf-native/reference and gguf-native/wasm in headless Chromium, which must be there
//   --view         the page to look at models: builds it, and tests it in headless Chromium, which must be there
//   --sanitized    with the addon under AddressSanitizer and UndefinedBehaviorSanitizer, then a search for leaks
import { buildAll, checkAddon, runNode } from "../lib/build.mjs";
import { need } from "../lib/commands.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";

function runTests(names, folder) {
  const files = testFiles(names, { folder });
  buildAll();
  checkAddon();
  runNode(...testArguments(files));
}

const others = {
  "--scale": (names) => runTests(names, "scale"),
  "--browser": () => {
    need(["chromium", "chromium"]);
    runTests(["browser", "wasm-entry"]);
  },
  "--view": () => {
    need(["chromium", "chromium"]);
    buildAll();
    runNode("scripts/build/view.mjs");
    runTests(["view-"]);
  },
  "--sanitized": (names) => runNode("scripts/test/sanitized-addon.mjs", ...names),
};

const given = process.argv.slice(2);
if (given[0] in others) others[given[0]](given.slice(1));
else runTests(given);

// `npm run build -- NAME...` builds these parts of the project, one after the other; without a name, the addon and the
// TypeScript. The addon alone, with options for node-gyp, is `npm run build:native`; the WebAssembly module, which the pages
// have in them, `npm run build:wasm`.
import { runNode } from "../lib/build.mjs";
import { fail } from "../lib/commands.mjs";

const script =
  (name, ...args) =>
  () =>
    runNode(`scripts/build/${name}.mjs`, ...args);

const parts = {
  native: script("native"),
  ts: script("sources"),
  wasm: script("wasm"),
  view: script("view"),
  "llama-page": script("example-page", "llama"),
  "search-page": script("example-page", "search"),
  cmake: () => runNode("node_modules/cmake-js/bin/cmake-js", "compile", "-d", "native", "-O", "build/cmake"),
};

const given = process.argv.slice(2);
const unknown = given.find((name) => !(name in parts));
if (unknown !== undefined)
  fail(`there is nothing to build called ${unknown}; there is ${Object.keys(parts).join(", ")}`);
for (const name of given.length > 0 ? given : ["native", "ts"]) parts[name]();

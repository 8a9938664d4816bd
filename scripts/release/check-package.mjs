// npm's script "prepack": stops `npm pack` and `npm publish` where something is not built that the package must have.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fail } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

/** What makes a file, in the order in which they have to be run. */
const makers = {
  "dist/index.js": "npm run build -- ts",
  "examples/llama.js": "npm run build -- ts",
  "vendor/binding.gyp": "npm run build:native",
  "dist/wasm/kernels.wasm": "npm run build:wasm",
  "dist/wasm/index.mjs": "npm run build:wasm",
  "dist/view/index.html": "npm run build -- view",
  "dist/view/session.js": "npm run build -- view",
};

const missing = Object.keys(makers).filter((file) => !existsSync(join(root, file)));
if (missing.length > 0) {
  const commands = new Set(missing.map((file) => makers[file]));
  fail(`the package would lack ${missing.join(", ")}: run ${[...commands].join(" && ")}`);
}

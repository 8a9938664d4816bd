// Loads an addon with musl, Alpine's C library. npm has no Node for musl, so a small C program loads the
// addon, with empty functions in place of Node-API.
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { need, output, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

export function loadWithMusl(addon) {
  need(["musl-gcc", "musl-tools"]);
  const folder = join(root, "build", "musl");
  const [program, standIns] = ["load_addon", "stand_ins.c"].map((name) => join(folder, name));
  const { include_dir, symbols } = createRequire(import.meta.url)("node-api-headers");
  const names = new Set(
    Object.values(symbols).flatMap((version) => [...version.js_native_api_symbols, ...version.node_api_symbols]),
  );
  mkdirSync(folder, { recursive: true });
  const definitions = [...names].map((name) => `__attribute__((weak)) int ${name}(void) { return 9; }\n`);
  writeFileSync(standIns, definitions.join(""));
  const source = join(root, "test", "native", "musl", "load_addon.c");
  run("musl-gcc", ["-rdynamic", `-I${include_dir}`, "-o", program, source, standIns]);
  console.log(`loaded with musl; ${output(program, [addon]).trim()}`);
}

// Makes vendor/, which the package has and the repository does not:
//
// - the headers of node-addon-api, where binding.gyp looks for them. So nobody who has a prebuilt addon installs
//   node-addon-api, and who compiles has the headers that were tested;
// - binding.gyp. In the package's own folder, package managers take it for a wish to compile: pnpm warns, or stops.
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { root } from "./paths.mjs";

const headers = ["napi.h", "napi-inl.h", "LICENSE.md"];

export function makeVendorFolder() {
  const from = dirname(createRequire(import.meta.url).resolve("node-addon-api/package.json"));
  const vendor = join(root, "vendor");
  rmSync(vendor, { recursive: true, force: true });
  mkdirSync(join(vendor, "node-addon-api"), { recursive: true });
  for (const name of headers) {
    cpSync(join(from, name), join(vendor, "node-addon-api", name), { preserveTimestamps: true });
  }
  cpSync(join(root, "binding.gyp"), join(vendor, "binding.gyp"));
}

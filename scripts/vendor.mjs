// Copies the headers of node-addon-api to vendor/, where binding.gyp looks for them. They are a part of the package, so
// that nobody who has a prebuilt addon installs node-addon-api, and who compiles has the headers that were tested.
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./paths.mjs";

const files = ["napi.h", "napi-inl.h", "LICENSE.md"];

export function vendorHeaders() {
  const from = dirname(createRequire(import.meta.url).resolve("node-addon-api/package.json"));
  const to = join(root, "vendor", "node-addon-api");
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  for (const file of files) cpSync(join(from, file), join(to, file), { preserveTimestamps: true });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) vendorHeaders();

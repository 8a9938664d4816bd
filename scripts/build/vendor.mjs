// Makes vendor/, which the package has and the repository does not:
//
// - the headers of node-addon-api, where binding.gyp looks for them. So nobody who has a prebuilt addon installs
//   node-addon-api, and who compiles has the headers that were tested;
// - the headers of Node-API, in a folder that node-gyp takes for one of Node's headers: for who compiles with a Node.js
//   that was installed without its own;
// - binding.gyp. In the package's own folder, package managers take it for a wish to compile: pnpm warns, or stops.
import { cpSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { root } from "../lib/paths.mjs";

const nodeApi = ["js_native_api.h", "js_native_api_types.h", "node_api.h", "node_api_types.h"];

export function makeVendorFolder() {
  const require = createRequire(import.meta.url);
  const vendor = join(root, "vendor");
  rmSync(vendor, { recursive: true, force: true });
  const copy = (from, names, ...to) => {
    for (const name of names) {
      cpSync(join(from, name), join(vendor, ...to, name), { preserveTimestamps: true });
    }
  };
  const packageFolder = (name) => dirname(require.resolve(`${name}/package.json`));
  copy(packageFolder("node-addon-api"), ["napi.h", "napi-inl.h", "LICENSE.md"], "node-addon-api");
  copy(packageFolder("node-api-headers"), ["LICENSE"], "node-api-headers");
  copy(require("node-api-headers").include_dir, nodeApi, "node-api-headers", "include", "node");
  const settings = ["common.gypi", "config.gypi"];
  copy(join(root, "native", "headers"), settings, "node-api-headers", "include", "node");
  copy(root, ["binding.gyp"]);
}

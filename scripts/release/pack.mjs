// The package as npm publishes it.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeVendorFolder } from "../build/vendor.mjs";
import { npm, run } from "../lib/commands.mjs";

/** Packs into `folder`, and unpacks there, to the folder `package`; `addon` tells where the addon of a system is there. */
export function pack(folder) {
  const unpacked = join(folder, "package");
  rmSync(unpacked, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  makeVendorFolder();
  const [{ filename }] = JSON.parse(npm("pack", "--ignore-scripts", "--json", "--pack-destination", folder));
  run("tar", ["-xzf", filename], { cwd: folder });
  const addon = (system) => join(unpacked, "prebuilds", system, "gguf-native.node");
  return { tarball: join(folder, filename), unpacked, addon };
}

// The package as npm publishes it.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { npm, run } from "./commands.mjs";

/** Packs into `folder`, and unpacks there, to the folder `package`. */
export function pack(folder) {
  const unpacked = join(folder, "package");
  rmSync(unpacked, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const [{ filename }] = JSON.parse(npm("pack", "--ignore-scripts", "--json", "--pack-destination", folder));
  run("tar", ["-xzf", filename], { cwd: folder });
  return { tarball: join(folder, filename), unpacked };
}

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lib/paths.mjs";

/** The licenses of packages whose code a bundle contains: each demands to be there, too. */
export function licensesOf(...packages) {
  return packages
    .map((name) => {
      const folder = join(root, "node_modules", name);
      const file = readdirSync(folder).find((each) => /^LICENSE(\.md)?$/.test(each));
      return `${name}\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
    })
    .join("\n\n");
}

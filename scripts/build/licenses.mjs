import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lib/paths.mjs";

/** The licenses of the packages that the files of a bundle, `inputs` of esbuild's metafile, are of: each demands to be there. */
export function licensesOf(inputs) {
  const files = Object.keys(inputs);
  const packages = files.flatMap((file) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(packages)]
    .sort()
    .map((each) => {
      const folder = join(root, each);
      const { name } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const file = readdirSync(folder).find((entry) => /^license(\.md)?$/i.test(entry));
      return `${name}\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
    })
    .join("\n\n");
}

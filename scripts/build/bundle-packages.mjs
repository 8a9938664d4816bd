// Puts packages into the compiled files that use them: the published package depends on what finds the addon, and on
// nothing else.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { root } from "../lib/paths.mjs";
import { licensesOf } from "./licenses.mjs";

/** The files that use packages: no other file of the sources does. */
export const packageUsers = ["cli/output/text-width", "convert/front-matter", "writer/exact-json"];

export function bundlePackages() {
  for (const file of packageUsers) {
    const { outputFiles, metafile } = buildSync({
      ...{ absWorkingDir: root, bundle: true, platform: "node", target: "node20", format: "cjs" },
      ...{ mainFields: ["module", "main"], external: ["../base/*"], tsconfigRaw: {}, legalComments: "none" },
      ...{ entryPoints: [join("src", `${file}.ts`)], write: false, metafile: true },
    });
    const licenses = `/*! ${licensesOf(metafile.inputs)} */\n`;
    writeFileSync(join(root, "dist", `${file}.js`), outputFiles[0].text + licenses);
  }
}

// Puts the parser of JSON into the compiled file that uses it, dist/writer/exact-json.js: the package depends on nothing.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildSync } from "esbuild";
import { root } from "../lib/paths.mjs";
import { licensesOf } from "./licenses.mjs";

export function bundleJson() {
  buildSync({
    ...{ absWorkingDir: root, bundle: true, platform: "node", target: "node20", format: "cjs" },
    ...{
      mainFields: ["module", "main"],
      external: ["../base/errors"],
      tsconfigRaw: {},
      legalComments: "none",
    },
    entryPoints: [join("src", "writer", "exact-json.ts")],
    outfile: join("dist", "writer", "exact-json.js"),
    allowOverwrite: true,
    footer: { js: `/*! ${licensesOf("jsonc-parser")} */` },
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) bundleJson();

// `npm run bench`, `npm run bench:check`: builds the package and the benchmarks, and runs them. See bench/README.md.
import { createRequire } from "node:module";
import { join } from "node:path";
import { buildPackage, runNode } from "../scripts/lib/build.mjs";

const require = createRequire(import.meta.url);

buildPackage();
runNode(require.resolve("typescript/bin/tsc"), "-p", "tsconfig.bench.json");
runNode("--expose-gc", join("build", "bench", "bench", "run.js"), ...process.argv.slice(2));

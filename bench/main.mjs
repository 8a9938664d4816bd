// `npm run bench`, `npm run bench:check`: builds the package and the benchmarks, and runs them. See bench/README.md.
import { join } from "node:path";
import { buildAll, runNode } from "../scripts/lib/build.mjs";
import { modelsFolder } from "../scripts/models/folder.mjs";

buildAll();
process.env.GGUF_NATIVE_MODELS = modelsFolder;
runNode("--expose-gc", join("build", "bench", "run.js"), ...process.argv.slice(2));

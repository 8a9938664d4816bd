// Builds and runs the TypeScript tests. `npm test -- metadata cli` runs only the files with such a name.
import { buildAll, checkAddon, runNode } from "../lib/build.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";

buildAll();
checkAddon();
runNode(...testArguments(testFiles(process.argv.slice(2))));

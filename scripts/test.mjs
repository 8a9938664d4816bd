// Builds and runs the TypeScript tests. `npm test -- metadata cli` runs only the files with such a name.
import { buildPackage, buildTests, checkAddon, runNode } from "./build.mjs";
import { testArguments, testFiles } from "./test-files.mjs";

buildPackage();
checkAddon();
buildTests();
runNode(...testArguments(testFiles(process.argv.slice(2))));

// Builds and runs the TypeScript tests. `npm test -- metadata cli` runs only the files with such a name.
import { buildPackage, buildTests, runNode } from "./build.mjs";
import { testFiles } from "./test-files.mjs";

buildPackage();
buildTests();
runNode("--expose-gc", "--test", "--test-reporter=spec", ...testFiles(process.argv.slice(2)));

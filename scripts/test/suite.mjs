// Builds and runs the TypeScript tests. `npm test -- metadata cli` runs only the files with such a name; `npm run test:scale`
// those of test/scale, which take minutes and up to 4 GiB of memory.
import { buildAll, checkAddon, runNode } from "../lib/build.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";

const [first, ...rest] = process.argv.slice(2);
const files = first === "--scale" ? testFiles(rest, { folder: "scale" }) : testFiles(process.argv.slice(2));

buildAll();
checkAddon();
runNode(...testArguments(files));

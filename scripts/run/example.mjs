// `npm run example -- NAME MODEL.gguf ...`: builds and runs examples/NAME.ts. With NAME alone, on a small sample model.
import { join } from "node:path";
import { buildAll, runNode } from "../lib/build.mjs";
import { writeSample } from "../lib/sample.mjs";

/** The examples, with their sample model and their arguments for it. */
const examples = {
  llama: ["llama", "--prompt", "token7 token8", "--tokens", "8"],
  "many-machines": ["llama", "--alone"],
};

const [name, ...args] = process.argv.slice(2);
if (name === undefined || !Object.hasOwn(examples, name)) {
  console.error(`name an example: npm run example -- ${Object.keys(examples).join("|")} MODEL.gguf ...`);
  process.exit(2);
}

buildAll();
if (args.length === 0) {
  const [sample, ...rest] = examples[name];
  args.push(writeSample(sample), ...rest);
}
runNode(join("build", "examples", `${name}.js`), ...args);

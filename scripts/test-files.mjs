// Which test files a run is about: all of them, or those whose names contain one of `names`.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";

export function testFiles(names) {
  const files = readdirSync(join(root, "test"))
    .filter((file) => file.endsWith(".test.ts"))
    .filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
    .map((file) => join("build", "test", file.replace(/\.ts$/, ".js")));
  if (files.length === 0) {
    console.error(`no test file is called ${names.join(" or ")}`);
    process.exit(1);
  }
  return files;
}

/** What to start Node with, for it to run them. */
export function testArguments(names, options = []) {
  return ["--expose-gc", "--test", "--test-reporter=spec", ...options, ...testFiles(names)];
}

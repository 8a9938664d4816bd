// The package in a project of its own, used by another runtime: everything that it prints must be what Node prints.
import { copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, output } from "./commands.mjs";
import { fetchRuntime, runtimes } from "./other-runtime.mjs";
import { root } from "./paths.mjs";

const project = join(root, "build", "package", "smoke");
const golden = join(root, "test", "fixtures", "golden.gguf");

/** What is run, by the names of the files in the project, and what the permissions of Deno must be for it. */
const programs = [
  {
    args: ["smoke.mjs"],
    deno: ["--allow-ffi", "--allow-read", "--allow-write", "--allow-env", "--allow-net", "--allow-sys"],
  },
  ...[
    ["inspect", golden, "--json"],
    ["stats", golden, "*", "--json"],
    ["hash", golden],
  ].map((args) => ({
    args: ["node_modules/gguf-native/dist/cli/main.js", ...args],
    deno: ["--allow-ffi", "--allow-read", "--allow-env"],
  })),
];

/** A project with the unpacked package and the smoke program. */
function makeProject(unpacked) {
  rmSync(project, { recursive: true, force: true });
  mkdirSync(join(project, "node_modules"), { recursive: true });
  symlinkSync(unpacked, join(project, "node_modules", "gguf-native"), "junction");
  writeFileSync(join(project, "package.json"), '{ "private": true }\n');
  copyFileSync(join(root, "build", "test", "support", "smoke.mjs"), join(project, "smoke.mjs"));
}

/** The first line that differs. */
function difference(expected, actual) {
  const [theirs, ours] = [expected, actual].map((text) => text.split("\n"));
  const at = theirs.findIndex((line, i) => line !== ours[i]);
  return `Node: ${theirs[at]}\nhere: ${ours[at]}`;
}

/** Runs the smoke program and the command line in Bun or Deno, with the unpacked package of a release. */
export function smokeIn(name, unpacked) {
  makeProject(unpacked);
  const runtime = fetchRuntime(name);
  for (const { args, deno } of programs) {
    const first = name === "deno" ? ["run", "--no-prompt", ...deno] : runtimes[name].options;
    const expected = output(process.execPath, args, { cwd: project });
    const actual = output(runtime, [...first, ...args], { cwd: project });
    if (actual !== expected)
      fail(`${name} ${args.join(" ")} prints something else\n${difference(expected, actual)}`);
    console.log(
      `${name} ${[...first, ...args].join(" ")}: ${expected.trim().split("\n").length} lines, as in Node`,
    );
  }
}

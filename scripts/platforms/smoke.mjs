// The package in a project of its own, used by another runtime: everything that it prints must be what Node prints.
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, output } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { fetchRuntime, runtimes } from "./other-runtime.mjs";

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
  for (const [name, folder] of [
    ["gguf-native", unpacked],
    ["node-gyp-build", join(root, "node_modules", "node-gyp-build")],
  ]) {
    symlinkSync(folder, join(project, "node_modules", name), "junction");
  }
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
    if (actual !== expected) fail(`${name} ${args.join(" ")} prints something else\n${difference(expected, actual)}`);
    console.log(`${name} ${[...first, ...args].join(" ")}: ${expected.trim().split("\n").length} lines, as in Node`);
  }
}

/** An executable of `bun build --compile`, as docs/runtimes.md describes it, where its node_modules is no longer there. */
export function runBunExecutable(unpacked) {
  makeProject(unpacked);
  const docs = readFileSync(join(root, "docs", "runtimes.md"), "utf8");
  const [, program] = /```ts\n(import [^`]*process\.execPath[^`]*)```/.exec(docs) ?? fail("docs/runtimes.md");
  const use = `console.log(openSync(process.argv[2]).tensor("Q4_0.gaussian").dequantizeSync().length);\n`;
  writeFileSync(join(project, "app.ts"), program + use);
  const place = join(project, "elsewhere");
  output(fetchRuntime("bun"), ["build", "--compile", "app.ts", "--outfile", join(place, "app")], {
    cwd: project,
  });
  rmSync(join(project, "node_modules"), { recursive: true });
  const addon = join("prebuilds", `${process.platform}-${process.arch}`, "gguf-native.node");
  copyFileSync(join(unpacked, addon), join(place, "gguf-native.node"));
  const printed = output(join(place, "app"), [golden], { cwd: place });
  if (printed !== "2048\n") fail(`the executable of Bun prints ${printed}`);
  console.log("an executable of bun build --compile works with a copy of the addon beside it");
}

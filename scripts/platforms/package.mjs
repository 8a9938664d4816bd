// Installs the package in an empty project where no compiler is found, and uses it there:
// `node scripts/platforms/package.mjs [FILE.tgz]`. Without a tarball, packs the package first. The addon must be prebuilt.
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { buildTests } from "../lib/build.mjs";
import { fail, npmCommand, output, run, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";
import { pack } from "../release/pack.mjs";

const folder = join(root, "build", "package");
const windows = process.platform === "win32";
const compilers = ["cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "make", "python3", "python"];

/** An environment in which neither compilers nor make nor Python are found. */
export function withoutCompilers() {
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  if (!windows) {
    for (const [name, target] of [
      ["node", process.execPath],
      ["sh", "/bin/sh"],
    ]) {
      rmSync(join(bin, name), { force: true });
      symlinkSync(target, join(bin, name));
    }
  }
  const path = windows ? [dirname(process.execPath), join(process.env.SystemRoot, "System32")] : [bin];
  const env = { ...process.env, PATH: path.join(delimiter), Path: path.join(delimiter) };
  for (const name of ["GGUF_NATIVE_ADDON", "PYTHON", "npm_config_python"]) delete env[name];
  const found = windows ? [] : compilers.filter((name) => tryRun(name, ["--version"], { env }).status === 0);
  if (found.length > 0) fail(`found in ${env.PATH}: ${found.join(", ")}`);
  return env;
}

function makeProject(name) {
  const project = join(folder, name);
  rmSync(project, { recursive: true, force: true });
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, "package.json"), '{ "private": true }\n');
  return project;
}

function install(tarball, project, env) {
  const [command, ...args] = npmCommand();
  output(command, [...args, "install", "--no-audit", "--no-fund", tarball], { cwd: project, env });
}

/** Installs and uses the package without a compiler. */
export function installAndUse(tarball) {
  const env = withoutCompilers();
  const project = makeProject("project");
  install(tarball, project, env);
  const installed = join(project, "node_modules", "gguf-native");
  run(process.execPath, testArguments(testFiles(["consumers"])), {
    env: { ...env, GGUF_NATIVE_TEST_PROJECT: project },
  });
  const program = join(installed, "dist", "cli", "main.js");
  const golden = join(root, "test", "fixtures", "golden.gguf");
  output(process.execPath, [program, "inspect", golden], { cwd: project, env });
  console.log(`${tarball} was installed and used without a compiler`);
}

/**
 * Without a prebuilt addon: the warning (or the error, if the package has no WebAssembly module either) names a command, which
 * says what it needs, and compiles the addon where that is there: without the network, and with a Node without headers.
 */
export function installAndCompile(tarball, offline) {
  const project = makeProject("project-without-prebuild");
  const bare = withoutCompilers();
  install(tarball, project, bare);
  const installed = join(project, "node_modules", "gguf-native");
  rmSync(join(installed, "prebuilds"), { recursive: true });
  const program = join(installed, "dist", "cli", "main.js");
  const expect = (what, wanted, { status, stderr }, message) => {
    if (status !== wanted || !message.test(stderr)) fail(`${what} says:\n${stderr}`);
  };
  const load = ["-p", "require('gguf-native').cpu().isa"];
  const run = (args, env) => tryRun(process.execPath, args, { cwd: project, env });
  const works = existsSync(join(installed, "dist", "wasm", "kernels.wasm")) ? 0 : 1;
  expect("the package", works, run(load, bare), /'npx gguf-native build' compiles it/);
  expect("build", 1, run([program, "build"], bare), /^gguf-native: compiling the addon needs .*Python 3.*\n$/);
  const [command, ...first] = offline.command;
  output(command, [...first, program, "build"], { cwd: project, env: offline.env });
  if (output(process.execPath, load, { cwd: project, env: bare }) === "wasm\n") fail("the compiled addon is not used");
  console.log("without a prebuilt addon, npx gguf-native build says what it needs, and compiles one");
}

/** What the last commit installs as a dependency from git: the compiled TypeScript, which says how to get the addon. */
export function installFromGit() {
  const project = makeProject("project-from-git");
  install(`git+${pathToFileURL(root).href}`, project, process.env);
  const { status, stderr } = tryRun(process.execPath, ["-p", "require('gguf-native').cpu().isa"], {
    cwd: project,
  });
  if (status === 0 || !/'npx gguf-native build' compiles it/.test(stderr)) fail(`the package says:\n${stderr}`);
  const reference = "require('gguf-native/reference').dequantizeSync('F32', new Uint8Array(4)).length";
  if (output(process.execPath, ["-p", reference], { cwd: project }) !== "1\n") fail("nothing was compiled");
  console.log("installed from git, npx gguf-native build is what is missing, and the package says so");
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  buildTests();
  const [file] = process.argv.slice(2);
  installAndUse(file ? resolve(file) : pack(folder).tarball);
}

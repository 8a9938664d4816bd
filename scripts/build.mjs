// What the other scripts share: building what they need, running commands.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const require = createRequire(import.meta.url);

/** Runs `node FILE ...` in the project; ends this process with its exit code where that is not 0. */
export function runNode(...args) {
  const { status, error, signal } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) {
    console.error(`failed${signal ? ` (${signal})` : ""}: node ${args.join(" ")}`);
    process.exit(status ?? 1);
  }
}

/** Compiles the TypeScript sources. */
export function buildSources() {
  runNode(require.resolve("typescript/bin/tsc"), "-p", "tsconfig.build.json");
}

/** Compiles the addon unless it is there, and the TypeScript sources, which is quick. */
export function buildPackage() {
  try {
    require("node-gyp-build").resolve(root);
  } catch {
    console.log("Compiling the addon ...");
    runNode(require.resolve("node-gyp/bin/node-gyp.js"), "rebuild");
  }
  buildSources();
}

/** Compiles the tests and their support code to build/test. */
export function buildTests() {
  if (!existsSync(join(root, "dist", "index.d.ts"))) buildSources();
  runNode(require.resolve("typescript/bin/tsc"), "-p", "tsconfig.test.json");
}

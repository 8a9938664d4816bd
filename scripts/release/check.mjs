// `npm run release:check`: all that the release workflow does with the package up to publishing, here, as far as one Linux
// machine can. What it cannot have made as in a release, or what a release still needs, is said at the end, and is exit code 1.
// The tests are `.ci/run` and `npm run test:platforms`.
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runNode } from "../lib/build.mjs";
import { isThere, npmCommand, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { compileForOtherSystems } from "../platforms/cross.mjs";
import { installAndUse } from "../platforms/package.mjs";
import { pack } from "./pack.mjs";

const stage = join(root, "build", "release");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const missing = [];

const npm = (...args) => {
  const [command, ...first] = npmCommand();
  run(command, [...first, ...args]);
};

const dated = new RegExp(`^## ${manifest.version.replaceAll(".", "\\.")} - \\d{4}-\\d{2}-\\d{2}$`, "m");
if (!dated.test(readFileSync(join(root, "CHANGELOG.md"), "utf8"))) {
  missing.push(`CHANGELOG.md has no line '## ${manifest.version} - YYYY-MM-DD'`);
}

rmSync(stage, { recursive: true, force: true });
rmSync(join(root, "prebuilds"), { recursive: true, force: true });
npm("run", "build", "--", "ts", "wasm", "view");
runNode("scripts/platforms/main.mjs", "prebuild");
if (isThere("aarch64-linux-gnu-g++")) runNode("scripts/platforms/main.mjs", "prebuild-arm64");
else missing.push("no addon for linux-arm64: apt-get install g++-aarch64-linux-gnu");
// Zig's Clang stands for the compilers of the other systems.
await compileForOtherSystems({ into: join(stage, "prebuilds") });
cpSync(join(stage, "prebuilds"), join(root, "prebuilds"), { recursive: true });
try {
  runNode("scripts/release/check-prebuilds.mjs");
  npm("test", "--", "package.test");
  const { tarball } = pack(stage);
  installAndUse(tarball);
  npm(
    "publish",
    tarball,
    "--dry-run",
    "--access",
    "public",
    "--tag",
    manifest.version.includes("-") ? "next" : "latest",
  );
} finally {
  // Nobody shall publish these.
  rmSync(join(root, "prebuilds"), { recursive: true, force: true });
}
if (missing.length > 0) {
  console.error(`\nThe package is good, but:\n${missing.map((line) => `- ${line}`).join("\n")}`);
  process.exit(1);
}
console.log("\nThe package can be released: set the version, tag it and push the tag, as docs/maintaining.md says");

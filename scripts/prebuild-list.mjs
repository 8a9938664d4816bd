// The prebuilt addons of a release, one for each system on which nothing must be compiled: files in prebuilds/, as
// src/addon.ts names them. Those for Linux run with glibc and with musl.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";

const source = readFileSync(join(root, "src", "addon.ts"), "utf8");

export const prebuilds = Array.from(source.matchAll(/"\.\.\/prebuilds\/(.+?)"/g), ([, name]) => name);

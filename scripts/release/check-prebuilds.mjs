// Before a release: checks that prebuilds/ holds every addon of the list and nothing else, and that they are portable.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fail } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { checkPortable } from "./portable.mjs";
import { prebuilds } from "./prebuild-list.mjs";

const folder = join(root, "prebuilds");
const systems = existsSync(folder) ? readdirSync(folder) : [];
const present = systems.flatMap((system) => readdirSync(join(folder, system)).map((name) => `${system}/${name}`));
const missing = prebuilds.filter((name) => !present.includes(name));
const surplus = present.filter((name) => !prebuilds.includes(name));
if (missing.length > 0) fail(`missing in prebuilds/: ${missing.join(", ")}`);
if (surplus.length > 0) fail(`not in scripts/release/prebuild-list.mjs: ${surplus.join(", ")}`);
for (const system of systems) checkPortable(join(folder, system));
for (const name of present) console.log(`${name}: ${statSync(join(folder, name)).size} bytes`);

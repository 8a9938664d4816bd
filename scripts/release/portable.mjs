// Whether a prebuilt addon runs on older systems than the one that it was built on.
import { existsSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { fail, output } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

/** What Node 20 itself needs. Debian 11 and Ubuntu 20.04 have 2.31. */
const newestGlibc = [2, 28];
/** musl's own library has this name too. */
const onlyLibrary = "libc.so.6";
/** Debian's package musl; its names are the same on every architecture. */
const musl = "/lib/ld-musl-x86_64.so.1";
const exports = ["napi_register_module_v1", "node_api_module_get_api_version_v1"];

/**
 * Symbols of an ELF file: their names, with the version after an @; whether another library defines them; and whether
 * they may be missing there.
 */
function symbolsOf(file) {
  const table = output("readelf", ["--wide", "--dyn-syms", file]);
  return [...table.matchAll(/^ *\d+: +[0-9a-f]+ +\w+ +\w+ +(GLOBAL|WEAK) +\w+ +(UND|\d+) +(\S+)/gm)].map(
    ([, binding, section, name]) => ({
      name,
      isElsewhere: section === "UND",
      isOptional: binding === "WEAK",
    }),
  );
}

function isTooNew(name) {
  const [, library, version] = /@(\w+?)_([\d.]+)$/.exec(name) ?? [];
  if (library === undefined) return false;
  if (library !== "GLIBC") return true; // GLIBCXX, CXXABI, GCC: of the C++ runtime, which is linked into the addon
  const [major, minor] = version.split(".").map(Number);
  return major > newestGlibc[0] || (major === newestGlibc[0] && minor > newestGlibc[1]);
}

function missingInMusl(symbols) {
  if (!existsSync(musl)) {
    console.log("not compared with musl: apt-get install musl");
    return [];
  }
  const there = new Set(symbolsOf(musl).map(({ name }) => name));
  return symbols
    .filter(({ isElsewhere, isOptional }) => isElsewhere && !isOptional)
    .map(({ name }) => name.replace(/@.*/, ""))
    .filter((name) => !name.startsWith("napi_") && !there.has(name));
}

/** What is wrong with an ELF file, in sentences. */
function problemsOf(file) {
  const symbols = symbolsOf(file);
  const needed = [...output("readelf", ["--wide", "--dynamic", file]).matchAll(/\(NEEDED\).*\[(.*)\]/g)];
  const exported = symbols.filter(({ isElsewhere }) => !isElsewhere).map(({ name }) => name);
  return [
    ...symbols
      .filter(({ name, isElsewhere }) => isElsewhere && isTooNew(name))
      .map(({ name }) => `needs ${name}; the newest that it may need is GLIBC_${newestGlibc.join(".")}`),
    ...needed.filter(([, name]) => name !== onlyLibrary).map(([, name]) => `needs the library ${name}`),
    ...missingInMusl(symbols).map((name) => `needs ${name}, which musl does not have`),
    ...(exported.sort().join() === exports.join() ? [] : [`exports ${exported.join(", ")}`]),
  ];
}

/** Checks the addons in a folder of prebuilds/; ends this process if one is not portable. Returns their paths. */
export function checkPortable(folder) {
  const files = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  if (files.length === 0) fail(`${folder} holds no addon`);
  for (const file of files) {
    const problems = folder.includes("linux-") ? problemsOf(file) : [];
    if (problems.length > 0) fail(`${relative(root, file)} ${problems.join("\n  and it ")}`);
    console.log(`${relative(root, file)} is portable`);
  }
  return files;
}

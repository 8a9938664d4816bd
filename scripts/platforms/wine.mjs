// The tests in a real Windows Node, under Wine.
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { buildVariant, toolchainSetting } from "../lib/build.mjs";
import { fail, need, run } from "../lib/commands.mjs";
import { addonFolder, root, variantAddon, variantFolder } from "../lib/paths.mjs";
import { testFiles } from "../lib/test-files.mjs";
import { fetchNode, nodeVersions } from "./other-node.mjs";

const folder = variantFolder("win32-x64");
const wine = "/usr/lib/wine/wine64"; // /usr/bin/wine asks for the 32-bit half, which is not needed
// Tests that start shells and Unix programs, kill processes, link folders, compare types, bundle, start browsers, or measure
// this machine's memory.
const leftOut = [
  "cli/cli",
  "decode/external-buffers",
  "decode/huge",
  "decode/memory",
  "package/addon",
  "package/consumers",
  "package/docs",
  "package/package",
  "reference/browser",
  "tokenizer/browser",
  "view/browser",
  "view/texts",
  "wasm/entry",
  "writer/writing-kills",
];

/** What a test file is called, such as "file-metadata.test.js". */
const nameOf = (file) => relative(join("build", "test"), file).replaceAll("/", "-");

/** The path in Wine. */
const windowsPath = (path) => `Z:${path.replaceAll("/", "\\")}`;

function buildAddon() {
  const library = join(folder, "libnode_api.a");
  mkdirSync(folder, { recursive: true });
  const { def_paths } = createRequire(import.meta.url)("node-api-headers");
  run("x86_64-w64-mingw32-dlltool", ["-d", def_paths.node_api_def, "-D", "node.exe", "-l", library]);
  buildVariant("win32-x64", [
    toolchainSetting("x86_64-w64-mingw32"),
    `-DCMAKE_JS_LIB=${library}`,
    `-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${addonFolder("win32-x64")}`, // for Windows, a library is a runtime file
  ]);
}

/** Runs one file; prints how many tests passed, and all that it printed if one failed. Returns whether all passed. */
function runTest(node, file) {
  const log = join(folder, `${nameOf(file)}.log`);
  const report = openSync(log, "w"); // Node for Windows cannot write to a Unix pipe
  const options = [
    "--require",
    windowsPath(join(root, "scripts/platforms/wine-sockets.cjs")),
    "--expose-gc",
    "--test-reporter=spec",
  ];
  const { status, error } = spawnSync(wine, [node, ...options, file], {
    cwd: root,
    stdio: ["ignore", report, report],
    timeout: 10 * 60_000,
    env: {
      ...process.env,
      ...{ WINEPREFIX: join(folder, "wine"), WINEDEBUG: "-all", NODE_SKIP_PLATFORM_CHECK: "1" },
      LC_ALL: "C.UTF-8", // the encoding of names of files
      GGUF_NATIVE_ADDON: windowsPath(variantAddon("win32-x64")),
      GGUF_NATIVE_TEST_EMULATED: "1",
    },
  });
  closeSync(report);
  const text = readFileSync(log, "utf8");
  const count = (what) => Number(new RegExp(`^ℹ ${what} (\\d+)`, "m").exec(text)?.[1] ?? 0);
  console.log(`${nameOf(file)}: ${count("pass")} passed, ${count("skipped")} skipped`);
  const passed = status === 0 && count("pass") > 0;
  if (!passed) console.log(`${error ?? ""}exit code ${status}:\n${text}`);
  return passed;
}

/** Builds the addon for Windows and runs the tests, or those files with such names. */
export function runTestsInWine(names = []) {
  need(
    [wine, "wine64"],
    ["x86_64-w64-mingw32-g++-posix", "g++-mingw-w64-x86-64-posix"],
    ["x86_64-w64-mingw32-dlltool", "binutils-mingw-w64-x86-64"],
  );
  buildAddon();
  const node = fetchNode("win-x64", nodeVersions[20]);
  const files = testFiles(names, { leftOut });
  const failed = files.filter((file) => !runTest(node, file));
  if (failed.length > 0) fail(`failed under Wine: ${failed.map((file) => nameOf(file)).join(", ")}`);
}

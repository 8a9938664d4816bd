/** Which addon is loaded, and what is said where none can be. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { buildSync } from "esbuild";
import { runNode, runSync, succeeds } from "../support/child";
import { goldenPath } from "../support/golden";
import { addonPlaces, installPackage, modulePlace, plainEnv, testedAddon } from "../support/installed";
import { needsAddon } from "../support/needs-addon";
import { projectRoot, temporaryFolder } from "../support/paths";
import { needsModule } from "../support/wasm";

const empty = installPackage();
const compiled = installPackage("compiled");
const prebuilt = installPackage("prebuilt");
const both = installPackage("compiled", "prebuilt");

/** Runs Node in an application. */
function node(application: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return runNode(args, { cwd: application, env: { ...plainEnv, ...env } });
}

const LOAD = ["-p", "require('gguf-native').cpu().available.includes('scalar')"];

test("no argument of a native function is dropped without a word", needsAddon, () => {
  const { native } = require(join(projectRoot, "dist", "backend", "native.js")) as {
    native: { formats(...args: number[]): unknown };
  };
  const many = (count: number): number[] => Array.from({ length: count }, () => 0);
  native.formats(...many(10));
  assert.throws(() => native.formats(...many(11)), { code: "ERR_GGUF_RANGE", message: /11 arguments/ });
});

const PERMISSION = Number.parseInt(process.versions.node, 10) < 22 ? "--experimental-permission" : "--permission";

/** The package must load. */
function expectLoads(application: string, env: NodeJS.ProcessEnv = {}, options: readonly string[] = []): void {
  const { stdout, stderr } = node(application, [...options, ...LOAD], env);
  assert.equal(stdout, "true\n", stderr);
}

/** The package must not load, and say `message`. */
function expectError(
  application: string,
  message: RegExp,
  env: NodeJS.ProcessEnv = {},
  options: readonly string[] = [],
): void {
  const { status, stderr } = node(application, [...options, ...LOAD], env);
  assert.equal(status, 1, stderr);
  assert.match(stderr, message);
}

/** Which addon the package says that it takes, and why. */
function addonOf({ application, bin }: typeof empty, env: NodeJS.ProcessEnv = {}) {
  const { stdout } = node(application, [bin, "doctor", "--json"], env);
  return JSON.parse(stdout).addon as { path: string | null; reason: string | null; error: string | null };
}

describe("which addon is loaded", () => {
  test("the one that was compiled here, else the prebuilt one", () => {
    for (const installed of [compiled, both]) {
      expectLoads(installed.application);
      const path = join(installed.folder, addonPlaces.compiled);
      assert.deepEqual(addonOf(installed), { path, reason: "compiled on this machine", error: null });
    }
    expectLoads(prebuilt.application);
    const path = join(prebuilt.folder, addonPlaces.prebuilt);
    const reason = `prebuilt for ${process.platform}-${process.arch}`;
    assert.deepEqual(addonOf(prebuilt), { path, reason, error: null });
  });
  test("the one that prebuildify has tagged for the C library", (t) => {
    if (process.platform !== "linux") return t.skip("one C library");
    const installed = installPackage("prebuilt");
    const file = join(installed.folder, addonPlaces.prebuilt);
    for (const libc of ["glibc", "musl"]) copyFileSync(file, file.replace(/node$/, `${libc}.node`));
    for (const libc of ["glibc", "musl"]) {
      const found = addonOf(installed, { LIBC: libc }).path ?? "";
      assert.match(found, new RegExp(`gguf-native\\.${libc}\\.node$`));
    }
  });
  test("none beside Node's executable, where other packages may have put theirs", () => {
    const elsewhere = join(empty.application, "bin");
    const place = join(elsewhere, addonPlaces.prebuilt);
    mkdirSync(dirname(place), { recursive: true });
    copyFileSync(testedAddon, place);
    const preload = join(elsewhere, "executable.cjs");
    writeFileSync(preload, `process.execPath = ${JSON.stringify(join(elsewhere, "node"))};`);
    expectError(empty.application, /no prebuilt addon for this system/, {}, ["--require", preload]);
  });
  test("where there is none, the error names the command that compiles it", () => {
    const message = /Error: gguf-native has no prebuilt addon for this system \(\w+-\w+\): 'npx gguf-native build'/;
    expectError(empty.application, message);
  });
  test("GGUF_NATIVE_ADDON comes first, whatever the name of the file, and relative to the working directory", () => {
    const other = join(empty.application, "other.so");
    copyFileSync(testedAddon, other);
    for (const { application } of [empty, both]) expectLoads(application, { GGUF_NATIVE_ADDON: other });
    expectLoads(empty.application, { GGUF_NATIVE_ADDON: "other.so" });
    const env = { GGUF_NATIVE_ADDON: other };
    assert.deepEqual(addonOf(both, env), { path: other, reason: "named by GGUF_NATIVE_ADDON", error: null });
  });
  test("a bad GGUF_NATIVE_ADDON is an error, even if there is a good addon", () => {
    const { application } = both;
    const text = join(application, "text.node");
    writeFileSync(text, "no addon\n".repeat(1000));
    for (const [GGUF_NATIVE_ADDON, message] of [
      ["none.node", /GGUF_NATIVE_ADDON names '.*none\.node', which does not exist/],
      [application, /GGUF_NATIVE_ADDON names '.*', which is not a file/],
      [text, /gguf-native cannot load its addon: .*text\.node/],
    ] as const) {
      expectError(application, message, { GGUF_NATIVE_ADDON });
    }
  });
  test("the addon of something else is an error", (t) => {
    const compiler = process.env.CXX?.split(" ") ?? ["c++"];
    const source = join(empty.application, "foreign.cc");
    const foreign = join(empty.application, "foreign.node");
    writeFileSync(
      source,
      'extern "C" __attribute__((visibility("default"))) void* napi_register_module_v1(void*, void* exports) { return exports; }\n',
    );
    const args = [...compiler.slice(1), "-shared", "-fPIC", "-o", foreign, source];
    const { status } = runSync(compiler[0] as string, args);
    if (status !== 0) return t.skip("no compiler that makes a shared library in this way");
    const message = /'.*foreign\.node' is the addon of something else/;
    expectError(empty.application, message, { GGUF_NATIVE_ADDON: foreign });
  });
});

describe("where the system forbids addons, the error says how to allow them", () => {
  test("--no-addons", () => {
    const message = /Error: gguf-native cannot load its addon: Node\.js was started with --no-addons/;
    expectError(prebuilt.application, message, {}, ["--no-addons"]);
    expectError(prebuilt.application, message, { NODE_OPTIONS: "--no-addons" });
  });
  test("the permission model", () => {
    const options = [PERMISSION, "--allow-fs-read=*"];
    const message = /Error: gguf-native cannot load its addon: .* start it with --allow-addons/;
    expectError(prebuilt.application, message, {}, options);
    expectLoads(prebuilt.application, {}, [...options, "--allow-addons"]);
  });
  const canMount = process.platform === "linux" && succeeds("unshare", ["--mount", "true"]);
  const needsMount = { skip: !canMount && "file systems cannot be mounted" };
  test("a file system that is mounted noexec", needsMount, () => {
    const place = join(empty.application, "noexec");
    mkdirSync(place);
    const addon = join(place, "addon.node");
    const script = `mount -t tmpfs -o noexec tmpfs '${place}' && cp '${testedAddon}' '${addon}' && exec "$@"`;
    const { status, stderr } = runSync("unshare", ["--mount", "sh", "-c", script, "sh", process.execPath, ...LOAD], {
      cwd: empty.application,
      env: { ...plainEnv, GGUF_NATIVE_ADDON: addon },
    });
    assert.equal(status, 1, stderr);
    const expected = /gguf-native cannot load its addon: '.*' is on a file system that is mounted noexec/;
    assert.match(stderr, expected);
  });
});

describe("where no addon can be loaded, the WebAssembly module takes its place", needsModule, () => {
  const installed = installPackage("prebuilt", "module");
  const alone = installPackage("module");
  const { application } = installed;
  const USE = [
    "-p",
    `const { cpu, openSync } = require("gguf-native");
     cpu().isa + " " + openSync(${JSON.stringify(goldenPath)}).tensor("Q4_0.gaussian").dequantizeSync().length`,
  ];

  /** It works, and says once why it is slow. */
  function expectModule(
    where: string,
    reason: RegExp | undefined,
    options: readonly string[] = [],
    env: NodeJS.ProcessEnv = {},
  ): void {
    const { stdout, stderr } = node(where, [...options, ...USE], env);
    assert.equal(stdout, "wasm 2048\n", stderr);
    const warnings = stderr.match(/\[GGUF_NATIVE_WASM\] Warning: [^\n]*/g) ?? [];
    assert.equal(warnings.length, reason === undefined ? 0 : 1, stderr);
    if (reason !== undefined) assert.match(warnings[0] as string, reason);
  }

  test("a system without an addon", () => {
    expectModule(alone.application, /no prebuilt addon for this system \(.*\): 'npx gguf-native build'/);
  });
  test("--no-addons", () => {
    expectModule(application, /started with --no-addons: leave that out/, ["--no-addons"]);
    expectModule(application, /--no-addons/, [], { NODE_OPTIONS: "--no-addons" });
  });
  test("the permission model", () => {
    expectModule(application, /start it with --allow-addons/, [PERMISSION, "--allow-fs-read=*"]);
  });
  test("an addon that does not load", () => {
    const broken = installPackage("prebuilt", "module");
    writeFileSync(join(broken.folder, addonPlaces.prebuilt), "no addon\n".repeat(1000));
    expectModule(broken.application, /cannot load its addon: .*gguf-native\.node/);
  });
  test("worker threads do not say it again", () => {
    const program = `const { Worker } = require("node:worker_threads");
      require("gguf-native");
      for (let i = 0; i < 3; i++) new Worker("console.log(require('gguf-native').cpu().isa)", { eval: true });`;
    const { stdout, stderr } = node(alone.application, ["-e", program]);
    assert.equal(stdout, "wasm\n".repeat(3), stderr);
    assert.equal(stderr.match(/GGUF_NATIVE_WASM/g)?.length, 1, stderr);
  });
  test("GGUF_NATIVE_WASM=1 asks for it, without a warning", () => {
    expectModule(application, undefined, [], { GGUF_NATIVE_WASM: "1" });
    const message = /dist\/wasm\/kernels\.wasm is not there \(GGUF_NATIVE_WASM is 1\)/;
    expectError(prebuilt.application, message, { GGUF_NATIVE_WASM: "1" });
    expectLoads(prebuilt.application, { GGUF_NATIVE_WASM: "0" });
  });
  test("an addon that was asked for by name is an error", () => {
    const env = { GGUF_NATIVE_ADDON: "none.node" };
    expectError(application, /GGUF_NATIVE_ADDON names '.*none\.node', which does not exist/, env);
    const forbidden = /Node\.js was started with --no-addons/;
    expectError(application, forbidden, { GGUF_NATIVE_ADDON: testedAddon }, ["--no-addons"]);
  });
  test("doctor says which is in use, and why", () => {
    const { status, stdout } = node(alone.application, [alone.bin, "doctor", "--json"]);
    const { addon, wasm, kernels } = JSON.parse(stdout);
    assert.equal(status, 0);
    assert.match(addon.error, /no prebuilt addon/);
    assert.equal(wasm.path, join(alone.folder, modulePlace));
    assert.deepEqual(kernels, { isa: "wasm", available: ["wasm"], threads: Math.min(availableParallelism(), 16) });
    const asked = node(application, [installed.bin, "doctor"], { GGUF_NATIVE_WASM: "1" });
    assert.match(asked.stdout, /^wasm .*kernels\.wasm\n +GGUF_NATIVE_WASM is 1$/m);
    assert.equal(asked.stderr, "");
  });
  test("the command line works", () => {
    const { status, stdout, stderr } = node(alone.application, [alone.bin, "stats", goldenPath, "Q4_0.gaussian"]);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /Q4_0\.gaussian/);
  });
  test("a bundle finds it in the folder wasm beside itself", () => {
    const folder = temporaryFolder();
    const bundle = join(folder, "app.cjs");
    buildSync({
      ...{ stdin: { contents: `console.log(require("gguf-native").cpu().isa)`, resolveDir: application } },
      ...{ outfile: bundle, bundle: true, platform: "node", logLevel: "silent" },
    });
    expectBundled(folder, bundle);
    mkdirSync(join(folder, "wasm"));
    copyFileSync(join(installed.folder, modulePlace), join(folder, "wasm", "kernels.wasm"));
    const { stdout, stderr } = node(folder, [bundle]);
    assert.equal(stdout, "wasm\n", stderr);
    assert.match(stderr, /gguf-native was bundled/);
  });
});

function expectBundled(folder: string, bundle: string): void {
  const { status, stderr } = node(folder, [bundle, goldenPath]);
  assert.equal(status, 1);
  assert.match(stderr, /Error: gguf-native was bundled.*"external".*GGUF_NATIVE_ADDON/);
}

describe("a bundle that the package is in", () => {
  const { application } = prebuilt;
  const folder = temporaryFolder();
  const source = join(application, "app.ts");
  const program = `import { openSync } from "gguf-native";
    console.log(openSync(process.argv[2]).tensor("Q4_0.gaussian").dequantizeSync().length);`;
  writeFileSync(source, program);
  const require = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
  for (const [name, format, banner] of [
    ["app.cjs", "cjs", ""],
    ["app.mjs", "esm", ""],
    ["with-require.mjs", "esm", require],
  ] as const) {
    const bundle = join(folder, "dist", name);

    test(`${name}: says so`, () => {
      const { warnings } = buildSync({
        ...{ entryPoints: [source], outfile: bundle, bundle: true, platform: "node" },
        ...{ format, banner: { js: banner }, logLevel: "silent" },
      });
      assert.deepEqual(warnings, []);
      expectBundled(folder, bundle);
    });
    test(`${name}: takes no addon of the application`, () => {
      for (const place of [...Object.values(addonPlaces), "build/Release/other.node"]) {
        const path = join(folder, place);
        mkdirSync(dirname(path), { recursive: true });
        copyFileSync(testedAddon, path);
      }
      writeFileSync(join(folder, "package.json"), '{ "name": "application" }');
      const { stderr } = node(folder, [bundle, goldenPath]);
      assert.match(stderr, /Error: gguf-native was bundled/);
    });
    if (name === "app.mjs") continue; // cannot require anything
    test(`${name}: works with GGUF_NATIVE_ADDON`, () => {
      const { stdout, stderr } = node(folder, [bundle, goldenPath], { GGUF_NATIVE_ADDON: testedAddon });
      assert.equal(stdout, "2048\n", stderr);
    });
  }
});

describe("the command line without an addon", () => {
  test("doctor says what is wrong, and all the rest", () => {
    const { status, stdout, stderr } = node(empty.application, [empty.bin, "doctor"]);
    assert.deepEqual([status, stderr], [1, ""]);
    assert.match(stdout, /^addon {2,}none$/m);
    const printed = stdout.replaceAll(/\n +/g, " ");
    assert.match(printed, /^error {2,}gguf-native has no prebuilt addon .* compiler$/m);
    assert.match(stdout, /^runtime {2,}Node\.js \d+/m);
    const { kernels, addon, system } = JSON.parse(node(empty.application, [empty.bin, "doctor", "--json"]).stdout);
    assert.equal(kernels, null);
    assert.match(addon.error, /^gguf-native has no prebuilt addon/);
    assert.equal(system.name, `${process.platform}-${process.arch}`);
  });
  test("help and versions work, and other commands say it in one line", () => {
    for (const option of ["--help", "--version"]) {
      assert.equal(node(empty.application, [empty.bin, option]).status, 0);
    }
    const { status, stdout, stderr } = node(empty.application, [empty.bin, "inspect", goldenPath]);
    assert.deepEqual([status, stdout], [1, ""]);
    assert.match(stderr, /^gguf-native: [^\n]*'npx gguf-native build'[^\n]*\n$/);
  });
});

describe("gguf-native build", () => {
  const GYP_ERROR = "gyp ERR! stack Error: no network\ngyp ERR! stack to be had\ngyp ERR! stack at go (x.js:1:2)";
  // A program in node-gyp's place, which takes a moment rather than minutes; the real one is in test:platforms.
  const nodeGyp = join(temporaryFolder(), "node-gyp.js");
  writeFileSync(
    nodeGyp,
    `const { cpSync, existsSync } = require("node:fs");
     if (!existsSync("vendor/node-addon-api/napi.h") || !existsSync("binding.gyp") || !existsSync("native/sources.txt")) throw new Error("no sources");
     console.log("  CXX(target) Release/obj.target/one.o");
     if (process.env.FAKE_ERROR) {
       console.log(process.env.FAKE_ERROR);
       process.exit(1);
     }
     cpSync(process.env.FAKE_ADDON, "build/Release/gguf_native.node");`,
  );
  const found = { CXX: process.execPath, MAKE: process.execPath };
  const tools = { npm_config_node_gyp: nodeGyp, FAKE_ADDON: testedAddon, ...found };
  const build = (installed: typeof empty, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) =>
    node(installed.application, [installed.bin, "build", ...args], { ...tools, ...env });

  test("puts the addon into the package, which takes it from then on", () => {
    const installed = installPackage();
    const { status, stdout, stderr } = build(installed);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /gguf_native\.node\ncompiled in \d+ s, .* kernels on this machine: \w+\n$/);
    expectLoads(installed.application);
    assert.equal(addonOf(installed).reason, "compiled on this machine");
  });
  test("-o puts it elsewhere; --verbose shows what is printed", () => {
    const { application, folder } = empty;
    const { status, stderr } = build(empty, ["-o", "new/addon.node", "--verbose"]);
    assert.equal(status, 0, stderr);
    assert.equal(stderr, "  CXX(target) Release/obj.target/one.o\n");
    expectLoads(application, { GGUF_NATIVE_ADDON: "new/addon.node" });
    assert.equal(existsSync(join(folder, addonPlaces.compiled)), false);
  });
  for (const [what, message, args, env] of [
    [
      "an error of the compiler",
      /does not compile: native\/one\.cc:1:2: error: it is wrong \(/,
      [],
      { FAKE_ERROR: "native/one.cc:1:2: error: it is wrong" },
    ],
    ["an error of node-gyp", /does not compile: Error: no network to be had \(/, [], { FAKE_ERROR: GYP_ERROR }],
    ["an addon that does not load", /compiled, but does not load: .*/, [], { FAKE_ADDON: nodeGyp }],
    ["a folder that cannot be made", /nothing can be written to '.*' \(E\w+\)/, ["-o", "app.txt/addon.node"], {}],
    [
      "missing tools",
      /needs a C\+\+17 compiler, make and Python 3, which were not found: .*\S/,
      [],
      { CXX: "no-such-compiler", MAKE: "no-such-make", PATH: "/nowhere", PYTHON: "", npm_config_python: "" },
    ],
  ] as [string, RegExp, string[], NodeJS.ProcessEnv][]) {
    const skip = what === "missing tools" && process.platform === "win32" && "node-gyp looks for them";
    test(`${what} is one line`, { skip }, () => {
      writeFileSync(join(empty.application, "app.txt"), "");
      const { status, stdout, stderr } = build(empty, args, env);
      assert.deepEqual([status, stdout], [1, ""], stderr);
      assert.match(stderr, /^gguf-native: [^\n]*\n$/);
      assert.match(stderr, message);
      assert.equal(existsSync(join(empty.folder, addonPlaces.compiled)), false);
    });
  }
});

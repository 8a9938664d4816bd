/** What npm publishes: the files in the tarball, and whether every tool that consumes it understands it. */
import assert from "node:assert/strict";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { before, describe, test } from "node:test";
import { buildSync } from "esbuild";
import { runNode, runSync } from "../support/child";
import { goldenPath } from "../support/golden";
import { testedAddon } from "../support/installed";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sampleModel } from "../support/sample-model";

// With the addons of all platforms.
const LARGEST_TARBALL_BYTES = 10_200_000;
const LARGEST_UNPACKED_BYTES = 25_000_000;
const LARGEST_ADDON_BYTES = 2_800_000;
const folder = temporaryFolder();
const manifest = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));

/** Runs Node; returns what it prints. */
function node(args: string[], cwd = folder) {
  const { status, stdout, stderr } = runNode(args, { cwd });
  assert.equal(status, 0, `node ${args.join(" ")}\n${stderr}${stdout}`);
  return { stdout, stderr };
}

/** Runs a program; returns what it prints. */
function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = runSync(program, args);
  assert.equal(status, 0, `${program} ${args.join(" ")}\n${stderr}${stdout}`);
  return stdout;
}

/** Runs npm, without the scripts of the package; returns what it prints. */
function npm(...args: string[]) {
  const all = [...args, "--ignore-scripts"];
  const script = process.env.npm_execpath;
  if (script?.endsWith(".js")) return node([script, ...all], projectRoot);
  const { status, stdout, stderr } = runSync("npm", all, { cwd: projectRoot });
  assert.equal(status, 0, stderr + stdout);
  return { stdout, stderr };
}

/** The path of a program of a development dependency. */
function tool(name: string, program = name): string {
  const { bin } = JSON.parse(readFileSync(join(projectRoot, "node_modules", name, "package.json"), "utf8"));
  return join(projectRoot, "node_modules", name, typeof bin === "string" ? bin : bin[program]);
}

/** All files of a folder but those that npm has installed there. */
function filesUnder(path: string): string[] {
  return readdirSync(join(projectRoot, path), { recursive: true, encoding: "utf8" })
    .map((name) => join(path, name))
    .filter((name) => statSync(join(projectRoot, name)).isFile())
    .map((name) => name.split(sep).join("/"))
    .filter((name) => !name.includes("/node_modules/"));
}

/** The files that a source is compiled to. */
function compiled(source: string): string[] {
  const [, name, m] = /^src\/(.*)\.([mc]?)ts$/.exec(source) ?? [];
  const isTyped = !/^src\/(cli|view-server)\//.test(source); // nobody imports the command line
  return [`dist/${name}.${m}js`, ...(isTyped ? [`dist/${name}.d.${m}ts`] : [])];
}

const nodeHeader = (name: string): string => `vendor/node-api-headers/include/node/${name}`;

describe("the tarball", () => {
  let tarball: string;
  let facts: { filename: string; size: number; files: { path: string; mode: number }[] };
  let prebuilds: string[];
  before(async () => {
    ({ prebuilds } = await import(relative(__dirname, join(projectRoot, "scripts", "release", "prebuild-list.mjs"))));
    [facts] = JSON.parse(npm("pack", "--json", "--pack-destination", folder).stdout);
    tarball = join(folder, facts.filename);
  });

  test("holds what it should and nothing else", () => {
    const native = filesUnder("native").filter(
      (name) => /\.(cc|h|def|map|txt)$/.test(name) && !name.endsWith("CMakeLists.txt"),
    );
    const expected = [
      ...["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "package.json"],
      "THIRD-PARTY-NOTICES",
      // What is of use in the bundles only is there and nowhere else.
      ...filesUnder("src")
        .filter((name) => /ts$/.test(name))
        .flatMap(compiled)
        .filter((name) => !/^dist\/wasm\/(embedded|imported).js$/.test(name)),
      ...readdirSync(join(projectRoot, "dist/wasm"))
        .filter((name) => name.startsWith("shared-"))
        .map((name) => `dist/wasm/${name}`),
      ...["dist/wasm/kernels.wasm"].filter((name) => existsSync(join(projectRoot, name))),
      ...["vendor/binding.gyp", ...native],
      ...["LICENSE.md", "napi-inl.h", "napi.h"].map((name) => `vendor/node-addon-api/${name}`),
      ...["js_native_api.h", "js_native_api_types.h", "node_api.h", "node_api_types.h"].map(nodeHeader),
      ...["common.gypi", "config.gypi"].map(nodeHeader),
      "vendor/node-api-headers/LICENSE",
      ...[...filesUnder("docs"), ...filesUnder("examples")].filter(
        (name) => !name.startsWith("docs/api/") && !name.endsWith("/.npmrc"), // npm packs none of these
      ),
      ...prebuilds.map((name) => `prebuilds/${name}`).filter((name) => existsSync(join(projectRoot, name))),
      ...["dist/view/index.html", "dist/view/session.js"].filter((name) => existsSync(join(projectRoot, name))),
    ];
    assert.deepEqual(facts.files.map(({ path }) => path).sort(), expected.sort());
  });

  test("runs the llama example where it is installed", () => {
    const modules = join(folder, "application", "node_modules");
    mkdirSync(modules, { recursive: true });
    run("tar", "-xzf", tarball, "-C", modules);
    renameSync(join(modules, "package"), join(modules, "gguf-native"));
    const dependency = join("node_modules", "node-gyp-build");
    cpSync(join(projectRoot, dependency), join(modules, "node-gyp-build"), { recursive: true });
    const model = join(folder, "sample.gguf");
    writeFileSync(model, sampleModel());
    const program = join(modules, "gguf-native", "examples", "llama.js");
    const args = [program, model, "--prompt", "token7 token8", "--tokens", "3"];
    const { stdout, stderr } = runNode(args, {
      ...{ cwd: folder, env: { ...process.env, GGUF_NATIVE_ADDON: testedAddon } },
    });
    assert.match(stdout, /^token7 token8( token\d+){3}\n$/, stderr);
  });

  test("holds what the README links to", () => {
    const paths = facts.files.map(({ path }) => path);
    const readme = readFileSync(join(projectRoot, "README.md"), "utf8");
    const links = Array.from(readme.matchAll(/\]\((?!https?:)([^)#]+)/g), ([, link]) => link);
    assert.ok(links.length > 10);
    for (const link of links) assert.ok(paths.includes(link as string), link);
  });

  test("holds no source maps, and names none", () => {
    for (const { path } of facts.files) {
      assert.doesNotMatch(path, /\.map$(?<!exports\.map)/);
      if (/^dist\/.*js$/.test(path)) {
        assert.doesNotMatch(readFileSync(join(projectRoot, path), "utf8"), /sourceMappingURL/, path);
      }
    }
  });

  test("needs nothing but Node, its dependency and what it holds", () => {
    const names = facts.files.map(({ path }) => path).filter((path) => /^dist\/.*\.[cm]?js$/.test(path));
    for (const name of names) {
      const text = readFileSync(join(projectRoot, name), "utf8");
      for (const [, from] of text.matchAll(/(?:^|[^.\w])(?:require|import)\("([^"]+)"\)|^import .*from "([^"]+)"/gm)) {
        if (from !== undefined) assert.match(from, /^(\.|node:|#|gguf-native|node-gyp-build$)/, name);
      }
    }
    const bundled = readFileSync(join(projectRoot, "dist", "writer", "exact-json.js"), "utf8");
    assert.match(bundled, /jsonc-parser\s+The MIT License/);
  });

  test("is small, with the addons of all platforms", (t) => {
    if (process.platform !== "linux" || !existsSync(testedAddon))
      return t.skip("there is no addon of Linux, or nothing to strip it with");
    // The one that is built, once for each.
    const addon = join(folder, "addon.node");
    const unpacked = join(folder, "package");
    run("strip", "-o", addon, testedAddon);
    run("tar", "-xzf", tarball, "-C", folder);
    for (const name of prebuilds) {
      mkdirSync(dirname(join(unpacked, "prebuilds", name)), { recursive: true });
      copyFileSync(addon, join(unpacked, "prebuilds", name));
    }
    const args = ["pack", "--json", "--dry-run", "--ignore-scripts"];
    const [all] = JSON.parse(run("npm", ...args, unpacked));
    const found = [statSync(addon).size, all.size, all.unpackedSize];
    t.diagnostic(`bytes of an addon, of the tarball, unpacked: ${found.join(", ")}`);
    assert.equal(all.files.filter(({ path }: { path: string }) => path.endsWith(".node")).length, 6);
    const most = [LARGEST_ADDON_BYTES, LARGEST_TARBALL_BYTES, LARGEST_UNPACKED_BYTES];
    for (const [i, bytes] of found.entries()) assert.ok(bytes <= most[i]!, `${found} bytes`);
  });

  test("publint finds nothing", (t) => {
    if (!existsSync(join(projectRoot, "dist", "wasm", "kernels.wasm")))
      return t.skip("the WebAssembly module, which the package exports, is not built: npm run build:wasm");
    assert.match(node([tool("publint"), "run", "--strict", tarball]).stdout, /All good!/);
  });

  test("types resolve for every kind of consumer", () => {
    // The kernels are no JavaScript: runtimes and bundlers say what their import is.
    const left = ["--exclude-entrypoints", "./kernels.wasm"];
    const { stdout } = node([tool("@arethetypeswrong/cli", "attw"), tarball, "--no-definitely-typed", ...left]);
    assert.match(stdout, /No problems found/);
  });

  test("npm would publish it without a warning", () => {
    const { stderr } = npm("publish", "--dry-run");
    const warnings = stderr
      .split("\n")
      .filter((line) => /^npm warn publish(?! This command requires you to be logged in)/i.test(line));
    assert.deepEqual(warnings, []);
  });
});

test("npm pack stops where something is not built, and says what to run", () => {
  const place = join(folder, "unbuilt");
  const made = ["dist/index.js", "examples/llama.js", "vendor/binding.gyp"];
  made.push("dist/wasm/kernels.wasm", "dist/wasm/index.mjs");
  for (const name of ["package.json", "scripts"]) {
    cpSync(join(projectRoot, name), join(place, name), { recursive: true });
  }
  const pack = () => {
    const { stderr, status } = runSync("npm", ["pack", "--dry-run"], {
      ...{ cwd: place, shell: process.platform === "win32" },
    });
    return { stderr, status };
  };
  const first = pack();
  assert.notEqual(first.status, 0);
  assert.match(
    first.stderr,
    /run npm run build -- ts && npm run build:native && npm run build:wasm && npm run build -- view$/m,
  );
  for (const name of made) {
    mkdirSync(dirname(join(place, name)), { recursive: true });
    writeFileSync(join(place, name), "");
  }
  assert.match(
    pack().stderr,
    /^the package would lack dist\/view\/index\.html, dist\/view\/session\.js: run npm run build -- view$/m,
  );
  mkdirSync(join(place, "dist", "view"));
  for (const name of ["index.html", "session.js"]) writeFileSync(join(place, "dist", "view", name), "");
  assert.equal(pack().status, 0);
});

test("the version is in the changelog", () => {
  assert.match(manifest.version, /^\d+\.\d+\.\d+(-[\w.]+)?$/);
  const changelog = readFileSync(join(projectRoot, "CHANGELOG.md"), "utf8");
  assert.ok(changelog.includes(`\n## ${manifest.version}`), `no section for ${manifest.version}`);
});

test("repository, home page and place for reports come from one address", () => {
  const script = join(projectRoot, "scripts", "release", "set-repository.mjs");
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "x", bugs: "old" }));
  node([script, "https://github.com/me/mine"]);
  assert.deepEqual(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")), {
    name: "x",
    bugs: "https://github.com/me/mine/issues",
    repository: { type: "git", url: "git+https://github.com/me/mine.git" },
    homepage: "https://github.com/me/mine#readme",
  });
});

test("nothing runs on installation, and nothing is installed but what finds the addon", () => {
  assert.deepEqual(Object.keys(manifest.dependencies), ["node-gyp-build"]);
  const found = readFileSync(join(projectRoot, "node_modules", "node-gyp-build", "package.json"), "utf8");
  // Where it comes from a file or a repository, npm also counts "prepare".
  const scripts = ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"];
  for (const installed of [manifest, JSON.parse(found)]) {
    for (const name of [...scripts, "prepublish"]) assert.equal(installed.scripts[name], undefined, name);
  }
  assert.equal(manifest.gypfile, false); // otherwise npm would compile where there is a binding.gyp
  for (const kind of ["optionalDependencies", "peerDependencies"]) {
    assert.equal(manifest[kind], undefined, kind);
  }
});

test("the notices name every package whose code is in the bundles or in the addon", () => {
  const notices = readFileSync(join(projectRoot, "THIRD-PARTY-NOTICES"), "utf8");
  const imported = [...filesUnder("src"), ...filesUnder("view")]
    .filter((name) => /\.[cm]?tsx?$/.test(name))
    .flatMap((name) => [
      ...readFileSync(join(projectRoot, name), "utf8").matchAll(/ from "([a-z][\w-]*|@[\w-]+\/[\w-]+)["/]/g),
    ])
    .map(([, name = ""]) => name)
    .filter((name) => name !== manifest.name);
  for (const name of ["preact", "string-width"]) assert.ok(imported.includes(name), name);
  // What these import is bundled, too.
  const all = new Set([...imported, "node-addon-api", "node-api-headers"]);
  for (const name of all) {
    const file = join(projectRoot, "node_modules", name, "package.json");
    const { dependencies = {} } = JSON.parse(readFileSync(file, "utf8"));
    for (const each of Object.keys(dependencies)) if (each !== "argparse") all.add(each); // The command of js-yaml uses it.
  }
  for (const name of all) {
    const folder = join(projectRoot, "node_modules", name);
    const license = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file)) ?? "";
    const [copyright = ""] = /Copyright \([cC]\) [^[<\n]+/.exec(readFileSync(join(folder, license), "utf8")) ?? [];
    // Links are left out there.
    assert.ok(copyright !== "" && notices.includes(copyright.trim()), `${name}: ${copyright}`);
  }
});

describe("an application bundled by esbuild, with the package beside it", () => {
  before(() => {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(projectRoot, join(folder, "node_modules", "gguf-native"), "junction");
    const source = `import { openSync } from "gguf-native";
      import { dequantizeSync } from "gguf-native/reference";
      const tensor = openSync(process.argv[2]).tensor("Q4_0.gaussian");
      console.log(tensor.dequantizeSync().length, dequantizeSync("Q4_0", tensor.bytes()).length);`;
    writeFileSync(join(folder, "app.ts"), source);
  });
  for (const [format, output] of [
    ["cjs", "app.cjs"],
    ["esm", "app.mjs"],
  ] as const) {
    test(format, () => {
      const { warnings } = buildSync({
        ...{ entryPoints: [join(folder, "app.ts")], outfile: join(folder, output), bundle: true },
        ...{ platform: "node", format, external: ["gguf-native"], logLevel: "silent" },
      });
      assert.deepEqual(warnings, []);
      assert.equal(node([output, goldenPath]).stdout, "2048 2048\n");
    });
  }
});

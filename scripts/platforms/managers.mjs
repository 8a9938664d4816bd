// Installs the package as each package manager does, where no compiler is found, and runs the smoke program in each of
// these projects: it must print the same everywhere. Nothing may be said about the package on the way.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, npm, run, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { fetchNode, nodeVersions } from "./other-node.mjs";
import { fetchRuntime } from "./other-runtime.mjs";
import { withoutCompilers } from "./package.mjs";
import { serveRegistry } from "./registry.mjs";

const folder = join(root, "build", "managers");

/** The files of an npm package, unpacked, beside its tarball; kept in build/managers/tools. */
function fetchTool(name, version) {
  const place = join(folder, "tools", `${name.replace(/\W+/g, "-")}-${version}`);
  const unpacked = join(place, "package");
  if (!existsSync(unpacked)) {
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place, { recursive: true });
    npm("pack", `${name}@${version}`, "--silent", "--pack-destination", place);
    const [archive] = readdirSync(place);
    run("tar", ["-xzf", archive], { cwd: place });
  }
  return unpacked;
}

const node = (major) => fetchNode("linux-x64", nodeVersions[major]);

/** A package manager that is a program for Node: the command that runs it. */
const inNode = (major, name, version, program) => [node(major), join(fetchTool(name, version), program)];

const yarn4 = (linker) => ({
  command: () => inNode(20, "@yarnpkg/cli-dist", "4.18.1", "bin/yarn.js"),
  install: (tarball) => ["add", `gguf-native@file:${tarball}`],
  files: {
    "yarn.lock": "",
    ".yarnrc.yml": `${[
      `nodeLinker: ${linker}`,
      "pnpEnableEsmLoader: true",
      "enableTelemetry: false",
      "enableGlobalCache: false",
      "enableImmutableInstalls: false",
    ].join("\n")}\n`,
  },
});

/** How each package manager is run, installs a tarball, and runs a program in the project (otherwise: Node 20). */
const managers = {
  "npm 10": { command: () => inNode(20, "npm", "10.9.9", "bin/npm-cli.js"), install: npmInstall },
  "npm 11": { command: () => inNode(22, "npm", "11.21.2", "bin/npm-cli.js"), install: npmInstall },
  "npm 12": { command: () => inNode(24, "npm", "12.2.0", "bin/npm-cli.js"), install: npmInstall },
  "npm 12 without links to programs": {
    command: () => inNode(24, "npm", "12.2.0", "bin/npm-cli.js"),
    install: (tarball) => [...npmInstall(tarball), "--no-bin-links"],
  },
  "pnpm 10": { command: () => inNode(20, "pnpm", "10.34.9", "bin/pnpm.cjs"), install: pnpmAdd },
  "pnpm 11": { command: () => inNode(22, "pnpm", "11.28.10", "bin/pnpm.mjs"), install: pnpmAdd },
  "pnpm 12": { command: () => [join(fetchTool("@pnpm/exe.linux-x64", "12.21.0"), "pnpm")], install: pnpmAdd },
  "Yarn 1": {
    command: () => inNode(20, "yarn", "1.22.22", "bin/yarn.js"),
    install: (tarball) => ["add", "--non-interactive", `file:${tarball}`],
  },
  "Yarn 4 with node_modules": yarn4("node-modules"),
  "Yarn 4 with Plug'n'Play": {
    ...yarn4("pnp"),
    ofItself: /ESM support for PnP|Done with warnings/, // it says so of its own loader, which ES modules need
    program: () => [node(20), "--require", "./.pnp.cjs", "--loader", "./.pnp.loader.mjs", "--no-warnings"],
  },
  Bun: {
    command: () => [fetchRuntime("bun")],
    install: (tarball) => ["add", tarball],
    program: () => [fetchRuntime("bun")],
  },
  Deno: {
    command: () => [fetchRuntime("deno")],
    install: () => ["add", "npm:gguf-native"], // knows no tarballs, but registries
    program: () => [fetchRuntime("deno"), "run", "--allow-all"],
  },
};

function npmInstall(tarball) {
  return ["install", "--no-audit", "--no-fund", tarball];
}

function pnpmAdd(tarball) {
  return ["add", tarball];
}

/** What must not be said while the package is installed. */
const complaint = /\bwarn|\berror|ERR_|ignored|blocked|deprecated|scripts\b|gyp\b(?!-build)|builds\b/i;

/** Without the settings of the npm that runs this script, about which others complain; those of the network stay. */
function withoutSettings(env) {
  const setting = /^npm_(?!config_(registry|cafile|https?_proxy|proxy|noproxy)$)/i;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !setting.test(name)));
}

/** Installs the tarball in a project of its own; returns what the smoke program prints there. */
function installAndRun(name, manager, tarball, registry) {
  const project = join(folder, name.replace(/\W+/g, "-"));
  const home = join(project, "home"); // nobody's settings and caches, which would keep an older tarball of this version
  rmSync(project, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const files = {
    "package.json": '{ "name": "project", "private": true, "license": "MIT" }',
    ...manager.files,
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(project, file), text);
  copyFileSync(join(root, "build", "test", "support", "smoke.mjs"), join(project, "smoke.mjs"));

  const env = {
    ...{
      ...withoutSettings(withoutCompilers()),
      HOME: home,
      XDG_DATA_HOME: home,
      XDG_CACHE_HOME: home,
      CI: "1",
    },
    ...(manager === managers.Deno && { NPM_CONFIG_REGISTRY: registry, NO_COLOR: "1" }),
  };
  const [command, ...first] = manager.command();
  const installed = tryRun(command, [...first, ...manager.install(tarball)], { cwd: project, env });
  const said = `${installed.stdout}${installed.stderr}`;
  if (installed.status !== 0) fail(`${name} does not install the package:\n${said}`);
  const line = said.split("\n").find((text) => complaint.test(text) && !manager.ofItself?.test(text));
  if (line !== undefined) fail(`${name} complains:\n${said}`);

  const [program, ...options] = manager.program?.() ?? [node(20)];
  const ran = tryRun(program, [...options, "smoke.mjs"], { cwd: project, env });
  if (ran.status !== 0 || ran.stderr !== "") {
    fail(`installed by ${name}, the package does not work:\n${ran.stdout}${ran.stderr}`);
  }
  return ran.stdout;
}

const manifestIn = (place) => JSON.parse(readFileSync(join(place, "package.json"), "utf8"));

/** What the package depends on, as it is in this project. */
function dependencies() {
  return Object.keys(manifestIn(root).dependencies).map((name) => {
    const { version } = manifestIn(join(root, "node_modules", name));
    const unpacked = fetchTool(name, version);
    return { tarball: join(unpacked, "..", `${name}-${version}.tgz`), manifest: manifestIn(unpacked) };
  });
}

/** Installs the tarball with each package manager. */
export async function installWithManagers(tarball) {
  const registry = await serveRegistry([{ tarball, manifest: manifestIn(root) }, ...dependencies()]);
  let expected;
  for (const [name, manager] of Object.entries(managers)) {
    const printed = installAndRun(name, manager, tarball, registry.address);
    expected ??= printed;
    if (printed !== expected) fail(`installed by ${name}, the package gives other results:\n${printed}`);
    console.log(`${name}: installed without a word of warning, ${printed.trim().split("\n").length} results`);
  }
  await registry.stop();
}

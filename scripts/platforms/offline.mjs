// Compiling downloads nothing, not even where Node.js was installed without its headers: everything that compiles the addon,
// in a copy of the project, with such a Node, no settings of npm, and no network.
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { npmCommand, output, run, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { fetchNode, nodeVersions } from "./other-node.mjs";

const folder = join(root, "build", "offline");

/** A program of this Node, which has no headers beside it. */
const bareNode = () => fetchNode("linux-x64", nodeVersions[20]);

/** Without the settings of npm and node-gyp, those of a home included; what asks a server gets no answer. */
function offlineEnv() {
  const home = join(folder, "home");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const env = Object.entries(process.env).filter(([name]) => !/^(npm_|XDG_)/i.test(name));
  const nowhere = "http://127.0.0.1:9";
  return {
    ...Object.fromEntries(env),
    ...{ HOME: home, HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, http_proxy: nowhere, https_proxy: nowhere },
    ...{ npm_config_userconfig: "/dev/null", npm_config_globalconfig: join(home, "none") },
    PATH: `${dirname(bareNode())}${delimiter}${process.env.PATH}`,
    CCACHE_DIR: process.env.CCACHE_DIR ?? join(homedir(), ".cache", "ccache"),
  };
}

/** A command of that Node in that environment, and, where the system allows it, in a network of its own without any server. */
export function offline() {
  const node = bareNode();
  const alone = ["unshare", "--net"];
  const isPossible = tryRun(alone[0], [...alone.slice(1), "true"]).status === 0;
  if (!isPossible) console.log("the network is not taken away: that takes the rights of root (unshare --net)");
  return { command: isPossible ? [...alone, node] : [node], env: offlineEnv() };
}

export function compileOffline() {
  const { command, env } = offline();
  const project = join(folder, "project");
  rmSync(project, { recursive: true, force: true });
  for (const file of output("git", ["ls-files", "-z"]).split("\0").filter(Boolean)) {
    cpSync(join(root, file), join(project, file));
  }
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"), "junction");
  const [program, ...first] = command;
  const runNode = (...args) => run(program, [...first, ...args], { cwd: project, env });
  const [, npm] = npmCommand();
  for (const [script, addon] of [
    ["dependencies", "build/Release/gguf_native.node"], // what `npm ci` does
    ["build:native", "build/Release/gguf_native.node"],
    ["build:cmake", "build/cmake/Release/gguf_native.node"],
    ["prebuildify", "prebuilds/linux-x64/gguf-native.node"],
  ]) {
    rmSync(join(project, addon), { force: true });
    console.log(`npm run ${script} ...`);
    runNode(npm, "run", "--silent", script);
    runNode("-e", `require(${JSON.stringify(join(project, addon))}).cpu().isa`);
  }
  console.log("the addon was compiled in every way without a download");
}

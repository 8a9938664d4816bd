// Runtimes other than Node that load the addon. What they do when a worker is terminated differs most: see
// native/binding/async_tasks.h.
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { npm, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

/** The releases that are tested, in the npm packages that carry them. */
export const runtimes = {
  bun: { package: "@oven/bun-linux-x64", version: "1.4.5", program: "bin/bun", options: [] },
  deno: { package: "@deno/linux-x64-glibc", version: "2.9.6", program: "deno", options: ["run", "-A"] },
};

/** The executable; kept in build/runtimes. */
export function fetchRuntime(name) {
  const { package: from, version, program } = runtimes[name];
  const folder = join(root, "build", "runtimes", `${name}-${version}`);
  const path = join(folder, "package", program);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    npm("pack", `${from}@${version}`, "--silent", "--pack-destination", folder);
    const archive = `${from.slice(1).replace("/", "-")}-${version}.tgz`;
    run("tar", ["-xzf", archive, `package/${program}`], { cwd: folder });
    rmSync(join(folder, archive));
  }
  return path;
}

/** Terminates 200 workers in the middle of their work, with an addon. */
export function terminateWorkersIn(name, addon) {
  const script = join("build", "test", "support", "terminated-workers.js");
  run(fetchRuntime(name), [...runtimes[name].options, script, "200"], {
    env: { ...process.env, GGUF_NATIVE_ADDON: addon },
  });
}

// Projects that install the package as its users do.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { npmCommand, output } from "../lib/commands.mjs";

/**
 * A new project with the tarball and other packages, each "name@version"; returns its folder, which goes away with this
 * process. It is outside this project, so that nothing is found in the node_modules here.
 */
export function installedProject(tarball, packages) {
  const project = mkdtempSync(join(tmpdir(), "gguf-native-project-"));
  process.on("exit", () => rmSync(project, { recursive: true, force: true }));
  writeFileSync(join(project, "package.json"), '{ "private": true }\n');
  install(project, tarball, ...packages);
  return project;
}

export function install(project, ...packages) {
  const [command, ...args] = npmCommand();
  output(command, [...args, "install", "--no-audit", "--no-fund", ...packages], { cwd: project });
}

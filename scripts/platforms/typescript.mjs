// The types of the package in old and new versions of TypeScript.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { install, installedProject } from "./installed-project.mjs";

/** The first that has `using`, the first and the last of 5 that tell kinds of memory apart, and those after it. */
const versions = ["5.2.2", "5.6.3", "5.9.3", "6.0.3", "7.0.2"];

const resolutions = [
  { module: "node16", moduleResolution: "node16", files: ["types.mts", "types.cts"] },
  { module: "nodenext", moduleResolution: "nodenext", files: ["types.mts", "types.cts"] },
  { module: "esnext", moduleResolution: "bundler", files: ["types.mts"] },
];

/** Where Blob and its like come from. Those of the browser first, in a project that does not have those of Node. */
const libraries = {
  "the browser's types": { lib: ["es2023", "esnext.disposable", "dom", "dom.iterable"], types: [] },
  "Node's types": { lib: ["es2023", "esnext.disposable"], types: ["node"] },
};

/** Compiles test/package/installed/types.ts, and the package's own declarations with it. */
export function compileWithVersions(tarball) {
  const compilers = versions.map((version) => `typescript-${version}@npm:typescript@${version}`);
  const project = installedProject(tarball, compilers);
  for (const file of ["types.mts", "types.cts"]) {
    copyFileSync(join(root, "test", "package", "installed", "types.ts"), join(project, file));
  }
  for (const [name, library] of Object.entries(libraries)) {
    if (library.types.includes("node")) install(project, nodeTypes());
    for (const version of versions) {
      for (const resolution of resolutions) compile(project, version, resolution, library);
      console.log(`TypeScript ${version}, ${name}: good`);
    }
  }
}

/** As this project has them. */
function nodeTypes() {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return `@types/node@${devDependencies["@types/node"]}`;
}

function compile(project, version, { module, moduleResolution, files }, library) {
  const compilerOptions = {
    ...{ module, moduleResolution, ...library, target: "es2022", noEmit: true },
    ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  const compiler = join(project, "node_modules", `typescript-${version}`, "bin", "tsc");
  const { status, stdout } = tryRun(process.execPath, [compiler, "-p", project], { cwd: project });
  if (status !== 0) fail(`TypeScript ${version}, module resolution ${moduleResolution}:\n${stdout}`);
}

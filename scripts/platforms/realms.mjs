// The package in test runners, which evaluate it in realms of their own.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { installedProject } from "./installed-project.mjs";

const require = createRequire(import.meta.url);

const jest = "jest@30.5.2";
const vitest = "vitest@5.1.1";
const pools = ["threads", "forks", "vmThreads", "vmForks"];
const environments = ["jest-environment-jsdom@30.5.2", "jsdom@29.1.1"];

/**
 * Runs test/package/installed/realms.js in Jest, as CommonJS and as an ES module, and in each pool of Vitest; each also with
 * jsdom. To Jest, jsdom is a browser, for which packages bring other files: that build is run in it, too.
 */
export function testRealms(tarball) {
  const project = installedProject(tarball, [jest, vitest, ...environments]);
  const path = join(project, "model.gguf");
  writeFileSync(path, model());
  const program = readFileSync(join(root, "test", "package", "installed", "realms.js"), "utf8");
  const place = `const path = ${JSON.stringify(path)};\n`;
  const loads = 'const gguf = require("gguf-native");\nconst { readFileSync } = require("node:fs");\n';
  const imports = 'import { readFileSync } from "node:fs";\nimport * as gguf from "gguf-native";\n';
  writeFileSync(join(project, "commonjs.test.cjs"), loads + place + program);
  writeFileSync(join(project, "module.test.mjs"), imports + place + program);
  const config = {
    testMatch: ["**/{commonjs,module}.test.?js"],
    transform: {},
    rootDir: project,
    testTimeout: 60_000,
  };
  writeFileSync(join(project, "jest.config.json"), JSON.stringify(config));

  const installed = join(project, "node_modules");
  const inProject = { cwd: project };
  const jestProgram = join(installed, "jest", "bin", "jest.js");
  const runJest = (...args) =>
    run(process.execPath, ["--experimental-vm-modules", jestProgram, "--no-cache", ...args], inProject);
  runJest();
  const jsdom = { ...config, testEnvironment: "jsdom" };
  const asNode = { ...jsdom, testEnvironmentOptions: { customExportConditions: ["node", "node-addons"] } };
  writeFileSync(join(project, "jsdom.config.json"), JSON.stringify(asNode));
  console.log("Jest with jsdom, the files for Node.js");
  runJest("--config", "jsdom.config.json");
  writeFileSync(join(project, "browser.test.cjs"), loads + place + browserProgram);
  writeFileSync(join(project, "browser.config.json"), JSON.stringify({ ...jsdom, testMatch: ["**/browser.test.cjs"] }));
  console.log("Jest with jsdom, the files for browsers");
  runJest("--config", "browser.config.json");
  const vitestProgram = join(installed, "vitest", "vitest.mjs");
  for (const pool of pools) {
    for (const environment of ["node", "jsdom"]) {
      console.log(`Vitest, pool ${pool}, environment ${environment}`);
      const options = ["--globals", "--pool", pool, "--environment", environment, "--testTimeout", "60000"];
      run(process.execPath, [vitestProgram, "run", ...options, "module.test.mjs"], inProject);
    }
  }
}

/** What works where there are no files. */
const browserProgram = `
test("the files for browsers load, and dequantize", () => {
  const file = gguf.parse(new Uint8Array(readFileSync(path)));
  const [tensor] = file.tensors.values();
  expect(tensor.dequantizeSync()).toStrictEqual(Float32Array.from({ length: 32 }, (_, i) => i));
  expect(file.metadata.get("strings")).toStrictEqual(["a", "b"]);
  expect(gguf.openSync).toBeUndefined();
});
`;

/** A file with metadata of every kind of array. */
function model() {
  const { arr, writeGguf } = require(join(root, "build", "test", "support", "gguf-writer.js"));
  const strings = (...texts) => arr("string", texts);
  const numbers = Float32Array.from({ length: 32 }, (_, i) => i);
  return writeGguf({
    metadata: [
      ["strings", strings("a", "b")],
      ["nested", arr("array", [strings("a"), strings("b")])],
      ["booleans", arr("bool", [true, false])],
      ["floats", arr("float32", [1.5, 2])],
    ],
    tensors: [{ name: "t", type: 0, shape: [4, 8], bytes: new Uint8Array(numbers.buffer) }],
  });
}

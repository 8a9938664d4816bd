// Where real models are, and what is in that folder.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const caches = {
  darwin: join(homedir(), "Library", "Caches"),
  win32: process.env.LOCALAPPDATA ?? join(homedir(), "AppData", "Local"),
};

/** GGUF_NATIVE_MODELS, or a folder in the user's cache. */
export const modelsFolder = resolve(
  process.env.GGUF_NATIVE_MODELS ||
    join(
      caches[process.platform] ?? (process.env.XDG_CACHE_HOME || join(homedir(), ".cache")),
      "gguf-native",
      "models",
    ),
);

/** The models: each with its packages of the Python package index, and its files with the parts that they are made of. */
export const models = JSON.parse(readFileSync(new URL("models.json", import.meta.url), "utf8")).map(
  ({ from, to, hashes = {}, files = [], ...model }) => {
    const whole = Object.entries(hashes).map(([name, sha256]) => {
      return { file: `${to}/${name}`, parts: [`${from}/${name}`], sha256 };
    });
    return { ...model, files: [...files, ...whole] };
  },
);

/** gguf-py, which tests compare with, and where it is. */
export const ggufPackage = "gguf==0.19.0";
export const pythonFolder = join(modelsFolder, "python");

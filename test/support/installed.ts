/** The package as it is installed in an application, with or without addons. */
import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { projectRoot, temporaryFolder } from "./paths";

/** Where the package looks for addons, the first one first. */
export const addonPlaces = {
  compiled: join("build", "Release", "gguf_native.node"),
  prebuilt: join("prebuilds", `${process.platform}-${process.arch}`, "gguf-native.node"),
};

/** Where it looks for the WebAssembly module. */
export const modulePlace = join("dist", "wasm", "kernels.wasm");

/** The addon that is tested. */
export const testedAddon =
  process.env.GGUF_NATIVE_ADDON ||
  (Object.values(addonPlaces)
    .map((place) => join(projectRoot, place))
    .find(existsSync) as string);

/** The environment of a process that finds the addon itself. */
export const plainEnv: NodeJS.ProcessEnv = {
  ...process.env,
  GGUF_NATIVE_ADDON: "",
  GGUF_NATIVE_WASM: "",
  NODE_OPTIONS: "",
  COLUMNS: "",
};

/** Makes an application that has the package in its node_modules, with addons and, if asked for, the module. */
export function installPackage(...places: (keyof typeof addonPlaces | "module")[]) {
  const application = temporaryFolder();
  const folder = join(application, "node_modules", "gguf-native");
  for (const name of ["package.json", "dist", "native", "vendor"]) {
    cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  }
  const dependency = join("node_modules", "node-gyp-build");
  cpSync(join(projectRoot, dependency), join(application, dependency), { recursive: true });
  if (!places.includes("module")) rmSync(join(folder, modulePlace), { force: true });
  for (const place of places) {
    if (place === "module") continue;
    const path = join(folder, addonPlaces[place]);
    mkdirSync(dirname(path), { recursive: true });
    cpSync(testedAddon, path);
  }
  return { application, folder, bin: join(folder, "dist", "cli", "main.js") };
}

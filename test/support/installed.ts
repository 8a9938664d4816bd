/** The package as it is installed in an application, with or without addons. */
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { projectRoot, temporaryFolder } from "./paths";

/** Where the package looks for addons, the first one first. */
export const addonPlaces = {
  compiled: join("build", "Release", "gguf_native.node"),
  prebuilt: join("prebuilds", `${process.platform}-${process.arch}`, "gguf-native.node"),
};

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
  NODE_OPTIONS: "",
  COLUMNS: "",
};

/** Makes an application that has the package in its node_modules, with addons at `places`. */
export function installPackage(...places: (keyof typeof addonPlaces)[]) {
  const application = temporaryFolder();
  const folder = join(application, "node_modules", "gguf-native");
  for (const name of ["package.json", "dist", "native", "vendor"]) {
    cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  }
  for (const place of places) {
    const path = join(folder, addonPlaces[place]);
    mkdirSync(dirname(path), { recursive: true });
    cpSync(testedAddon, path);
  }
  return { application, folder, bin: join(folder, "dist", "cli", "main.js") };
}

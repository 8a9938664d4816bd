// Where things are.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** Where the C++ tests and the addon are built with sanitizers or for another system, as `variant` says. */
export const variantFolder = (variant) => join(root, "build", `native-tests-${variant}`);

/** Where the addon of a variant is. */
export const addonFolder = (variant) => join(variantFolder(variant), "build", "Release");
export const variantAddon = (variant) => join(addonFolder(variant), "gguf_native.node");

/** Where the addon of this project is: compiled by node-gyp, or as in a release. */
export const addons = [
  join(root, "build", "Release", "gguf_native.node"),
  join(root, "prebuilds", `${process.platform}-${process.arch}`, "gguf-native.node"),
];

// Where things are.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Where the C++ tests and the addon are built with sanitizers or for another system, as `variant` says. */
export const variantFolder = (variant) => join(root, "build", `native-tests-${variant}`);

/** Where node-gyp-build looks for the addon below the folder that GGUF_NATIVE_PREBUILD names. */
export const addonFolder = (variant) => join(variantFolder(variant), "build", "Release");

/**
 * What is wrong where a bundler has put this package into a file of its own, far from the addon. Imported before
 * everything else: in some bundles not even Node's own modules can be required.
 */

export const BUNDLED =
  "gguf-native was bundled, and a bundle does not contain its addon. Leave the package out of the bundle " +
  '("external"; in Next.js "serverExternalPackages"), or set GGUF_NATIVE_ADDON to the path of the addon ' +
  "(gguf-native/prebuilds/<system>/gguf-native.node). See docs/install.md";

// A function of its own: in a try block, Rollup would leave the require as it is.
const requireBuiltIn = (): unknown => require("node:path");
try {
  requireBuiltIn();
} catch (cause) {
  throw new Error(BUNDLED, { cause });
}

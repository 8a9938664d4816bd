// What `npm ci` and `npm install` do in this repository, as npm's script "dependencies": compiles the addon, if there is
// none, and the TypeScript sources. Not "prepare" or "install": where the package is installed, package managers would
// warn of those, or stop.
import { buildPackage, buildSources } from "../lib/build.mjs";
import { makeVendorFolder } from "./vendor.mjs";

// `npm install git+https://...` comes here, too, and packs what it finds afterwards. An addon that were compiled now would not
// be packed: `npx gguf-native build` compiles it where the package was installed, and the package says so.
const isForGitDependency = process.env._PACOTE_NO_PREPARE_ !== undefined;

if (isForGitDependency) {
  makeVendorFolder();
  buildSources();
} else {
  buildPackage();
}

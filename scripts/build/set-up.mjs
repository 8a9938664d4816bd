// What `npm ci` and `npm install` do in this repository, as npm's script "dependencies": compiles the addon, if there is
// none, and the TypeScript sources. Not "prepare" or "install": where the package is installed, package managers would
// warn of those, or stop.
import { buildPackage } from "../lib/build.mjs";

buildPackage();

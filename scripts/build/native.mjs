// `npm run build:native`: compiles the addon. Options go to node-gyp.
import { buildAddon } from "../lib/build.mjs";

buildAddon(...process.argv.slice(2));

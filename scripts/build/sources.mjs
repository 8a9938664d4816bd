// `npm run build -- ts`: compiles the sources, and bundles what is bundled.
import { buildSources } from "../lib/build.mjs";

buildSources();

// `npm run bench:view`: how fast the page opens a file of a gigabyte from the disk, and shows the heatmap of a tensor of 67
// million weights. Headless Chromium; milliseconds, the median of some
// runs. Needs the page of `npm run build:view`.
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { buildAll } from "../lib/build.mjs";
import { fail, need } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const require = createRequire(import.meta.url);
const RUNS = 5;
const COLUMNS = 8192;
const ROWS = 8192;

need(["chromium", "chromium"]);
buildAll();
const support = (name) => require(join(root, "build", "test", "support", name));
const { launch, noPage, pageFileUrl, pagePath, ViewPage } = support("view-page.js");
const { serveView } = require(join(root, "dist", "cli", "work", "view-server.js"));
const { startSession } = require(join(root, "dist", "view", "session.js"));
if (noPage) fail(noPage);

const folder = mkdtempSync(join(tmpdir(), "gguf-native-bench-"));
const browser = await launch();
try {
  const large = await writeLarge(join(folder, "large.gguf"));
  console.log(
    `a file of ${(statSync(large).size / 2 ** 30).toFixed(2)} GiB, of which ${COLUMNS} x ${ROWS} weights are Q4_K`,
  );
  await measure("opening it from the disk", openFromDisk);
  await measure("opening it over the local server", openFromServer);
  await measure("the heatmap, from the disk", (large) => heatmap(large, openFromDisk));
  await measure("the heatmap, over the local server", (large) => heatmap(large, openFromServer));

  async function measure(title, run) {
    const times = [];
    for (let i = 0; i < RUNS; i++) times.push(await run(large));
    times.sort((a, b) => a - b);
    console.log(`${title.padEnd(36)} ${times[RUNS >> 1].toFixed(0).padStart(6)} ms`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}

/** A file of a gigabyte: a tensor of random weights, and others of zeros, which take no space on the disk. */
async function writeLarge(path) {
  const { gaussianBlocks } = support("blocks.js");
  const { Random } = support("random.js");
  const { writeSparseGguf } = support("sparse-file.js");
  const blocks = gaussianBlocks("Q4_K", (COLUMNS * ROWS) / 256, new Random(1));
  const layers = Array.from({ length: 32 }, (_, layer) => ({
    name: `blk.${layer}.ffn_down.weight`,
    type: 12,
    shape: [COLUMNS, 7168],
    byteLength: ((COLUMNS * 7168) / 256) * 144,
  }));
  const output = {
    ...{ name: "output.weight", type: 12, shape: [COLUMNS, ROWS], byteLength: blocks.length },
    pieces: [{ at: 0, bytes: blocks }],
  };
  const failure = writeSparseGguf(path, [output, ...layers]);
  if (failure) fail(failure);
  return path;
}

/** Milliseconds from choosing the file to its name. */
async function openFromDisk(path, then = () => 0) {
  const view = await ViewPage.open(browser, pageFileUrl);
  const begin = performance.now();
  await view.choose(path);
  const time = performance.now() - begin;
  const result = await then(view);
  await view.close();
  return result || time;
}

/** Milliseconds from asking for the page to the name of the file. */
async function openFromServer(path, then = () => 0) {
  const server = await serveView(readFileSync(pagePath, "utf8"), [[path]], 0, startSession);
  const begin = performance.now();
  const view = await ViewPage.open(browser, server.url);
  await view.opened();
  const time = performance.now() - begin;
  const result = await then(view);
  await view.close();
  await server.close();
  return result || time;
}

/** Milliseconds from opening the tensor to its heatmap. */
function heatmap(path, open) {
  return open(path, async (view) => {
    const begin = performance.now();
    const region = await view.tensor("output.weight");
    await region.getByTestId("heatmap").waitFor();
    return performance.now() - begin;
  });
}

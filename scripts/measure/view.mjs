// `node scripts/measure/view.mjs`: how fast the page opens a file of a gigabyte from the disk, and shows the heatmap of a tensor of 67
// million weights, and the same over the server of `gguf-native view`. Headless Chromium; milliseconds, the median of some
// runs. Needs `npm run build:wasm` and `npm run build -- view`.
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildAll } from "../lib/build.mjs";
import { fail, need } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const require = createRequire(import.meta.url);
const RUNS = 5;
const COLUMNS = 8192;
const ROWS = 8192;
/** Times are taken in the page: Playwright looks for elements only every half second after a while. */
const CLOCK = `
  globalThis.whenSeen = (testId) => new Promise((resolve) => {
    const look = () => {
      if (document.querySelector("[data-testid=" + testId + "]") === null) return;
      observer.disconnect();
      resolve(performance.now());
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { childList: true, subtree: true });
  });
  globalThis.begun = 0;
  addEventListener("change", () => { begun = performance.now(); }, true);
  globalThis.opening = whenSeen("model-name").then((time) => time - begun);
`;

need(["chromium", "chromium"]);
buildAll();
const support = (name) => require(join(root, "build", "test", "support", name));
const { launch, noPage, pageFileUrl, pagePath, ViewPage } = support("view-page.js");
if (noPage) fail(noPage);
const { serveView } = require(join(root, "dist", "view-server", "server.js"));
const { startSession } = require(join(root, "dist", "view", "session.js"));

const folder = mkdtempSync(join(tmpdir(), "gguf-native-bench-"));
const browser = await launch();
try {
  const large = await writeLarge(join(folder, "large.gguf"));
  console.log(
    `a file of ${(statSync(large).size / 2 ** 30).toFixed(2)} GiB, of which ${COLUMNS} x ${ROWS} weights are Q4_K`,
  );
  await measure("opening it from the disk", () => openFromDisk(large));
  await measure("opening it over the local server", () => openFromServer(large));
  await measure("the heatmap, from the disk", () => openFromDisk(large, heatmap));
  await measure("the heatmap, over the local server", () => openFromServer(large, heatmap));

  async function measure(title, run) {
    const times = [];
    for (let i = 0; i < RUNS; i++) times.push(await run());
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
async function openFromDisk(path, then = opening) {
  const view = await ViewPage.open(browser, pageFileUrl, {}, CLOCK);
  await view.choose(path);
  const time = await then(view);
  await view.close();
  return time;
}

/** Milliseconds from asking for the page to the name of the file. */
async function openFromServer(path, then = opening) {
  const server = await serveView(readFileSync(pagePath, "utf8"), [[path]], 0, startSession);
  const view = await ViewPage.open(browser, server.url, {}, CLOCK);
  await view.opened();
  const time = await then(view);
  await view.close();
  await server.close();
  return time;
}

function opening({ page }) {
  return page.evaluate("opening");
}

/** Milliseconds from opening the tensor to its heatmap. */
function heatmap({ page }) {
  return page.evaluate(`{
    begun = performance.now();
    location.hash = "#tensors/output.weight";
    whenSeen("heatmap").then((time) => time - begun);
  }`);
}

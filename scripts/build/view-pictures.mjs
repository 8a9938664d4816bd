// `npm run view:pictures`: pictures of the page to look at models for docs/pictures, at the width of a phone and of a desktop,
// light and dark. `-- --all FOLDER` takes all of them, to look at. Needs Chromium and the page of `npm run build:view`.
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { buildAll } from "../lib/build.mjs";
import { fail, need } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const require = createRequire(import.meta.url);
const SHOWN = "blk.1.ffn_gate.weight";
/** What the documentation shows. */
const KEPT = ["summary-desktop-light", "tensor-desktop-dark", "tensor-phone-light", "compare-desktop-light"];

need(["chromium", "chromium"]);
buildAll();
const support = (name) => require(join(root, "build", "test", "support", name));
const { launch, noPage, pageFileUrl, SCREENS, ViewPage } = support("view-page.js");
if (noPage) fail(noPage);

const [option, folder = join("docs", "pictures")] = process.argv.slice(2);
if (option !== undefined && option !== "--all") fail("usage: npm run view:pictures -- --all FOLDER");
mkdirSync(join(root, folder), { recursive: true });

/** How each view is reached, with a model open. */
const views = {
  summary: async (view) => {
    await view.tab("Summary");
  },
  metadata: async (view) => {
    await view.tab("Metadata");
  },
  tensor: async (view) => {
    await view.tab("Tensors");
    const region = await view.tensor(SHOWN);
    await region.getByTestId("stats").waitFor();
  },
  compare: async (view, path) => {
    await view.tab("Compare");
    await view.page.getByTestId("compare-file").setInputFiles(path);
    const differences = view.page.getByRole("grid", { name: "Differences" });
    await differences.focus();
    await view.page.keyboard.press("End"); // rows that are not in sight are no elements
    await differences.getByRole("row").filter({ hasText: SHOWN }).first().click();
    await view.page.getByTestId("comparison").waitFor();
    await view.page
      .getByRole("heading", { name: "Two tensors" })
      .evaluate((heading) => heading.scrollIntoView());
  },
  memory: async (view) => {
    await view.tab("Memory");
  },
};

const temporary = mkdtempSync(join(tmpdir(), "gguf-native-pictures-"));
const browser = await launch();
try {
  const [path, other] = [join(temporary, "model-F16.gguf"), join(temporary, "model-Q8_0.gguf")];
  writeFileSync(
    path,
    modelWith((x) => x),
  );
  // As a type of eight bits would round it.
  writeFileSync(
    other,
    modelWith((x) => Math.round(x * 200) / 200),
  );
  for (const [screen, viewport] of Object.entries(SCREENS)) {
    for (const colorScheme of ["light", "dark"]) {
      const view = await ViewPage.open(browser, pageFileUrl, { viewport, colorScheme });
      await view.choose(path);
      for (const [name, show] of Object.entries(views)) {
        const picture = `${name}-${screen}-${colorScheme}`;
        if (option === undefined && !KEPT.includes(picture)) continue;
        await show(view, other);
        await view.idle();
        const file = join(root, folder, `${picture}.webp`);
        writeFileSync(file, await webp(view.page));
        console.log(`${relative(root, file)}: ${statSync(file).size} bytes`);
      }
      await view.close();
    }
  }
} finally {
  await browser.close();
  rmSync(temporary, { recursive: true, force: true });
}

/** A picture of what is in sight. Playwright itself has no WebP, which is a fifth of a PNG here. */
async function webp(page) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 70 });
  return Buffer.from(data, "base64");
}

/** The sample model; the weights of one tensor have a structure, as those of real models have. */
function modelWith(round) {
  const { parse, quantizeSync } = require("gguf-native");
  const { Random } = support("random.js");
  const bytes = support("sample-model.js").sampleModel();
  const { offset, byteLength, shape } = parse(bytes).tensor(SHOWN);
  const [columns, rows] = shape;
  const random = new Random(3);
  const some = (count) => Float32Array.from({ length: count }, () => random.gaussian());
  const ofColumns = Array.from({ length: 4 }, () => some(columns));
  const ofRows = Array.from({ length: 4 }, () => some(rows));
  const strong = Float32Array.from({ length: columns }, () => (random.below(60) === 0 ? 3 : 1));
  const values = new Float32Array(columns * rows);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const common = ofRows.reduce((sum, row, i) => sum + row[r] * ofColumns[i][c], 0);
      const wave = Math.sin(c / 19 + r / 67) + Math.cos((c - r / 3) / 41);
      values[r * columns + c] = round(
        0.02 * strong[c] * (0.5 * random.gaussian() + 0.4 * common + 0.7 * wave),
      );
    }
  }
  bytes.set(quantizeSync("F16", values).subarray(0, byteLength), offset);
  return bytes;
}

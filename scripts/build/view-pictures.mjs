// `node scripts/build/view-pictures.mjs`: pictures of the page to look at models for docs/pictures, at the width of a desktop, light
// or dark. `-- --all FOLDER` takes all of them, to look at. Needs Chromium and the page of `npm run build -- view`.
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { buildAll } from "../lib/build.mjs";
import { fail, need } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { SHOWN, sampleForPage, writeModelsToCompare } from "../lib/sample.mjs";

const require = createRequire(import.meta.url);
/** What the documentation shows. */
const KEPT = ["summary-desktop-light", "tensor-desktop-dark", "compare-desktop-light"];

need(["chromium", "chromium"]);
buildAll();
const support = (name) => require(join(root, "build", "test", "support", name));
const { launch, noPage, pageFileUrl, SCREENS, ViewPage } = support("view-page.js");
if (noPage) fail(noPage);

const [option, folder = join("docs", "pictures")] = process.argv.slice(2);
if (option !== undefined && option !== "--all") fail("usage: node scripts/build/view-pictures.mjs --all FOLDER");
mkdirSync(join(root, folder), { recursive: true });

/** How each view is reached, with a model open; two of them to compare. */
const views = {
  summary: async (view) => {
    await view.tab("Summary");
  },
  metadata: async (view) => {
    await view.tab("Metadata");
  },
  vocabulary: async (view) => {
    const panel = await view.tab("Vocabulary");
    await panel
      .getByRole("textbox", { name: "Text to tokens" })
      .fill("A quantized model: its tensors, and naïve tokens.");
    await panel.getByTestId("tokens").waitFor();
  },
  template: async (view) => {
    await view.tab("Metadata");
    await view.page.getByRole("searchbox").fill("chat_template");
    await view.page.getByRole("row", { name: /chat_template/ }).click();
    await view.page.getByTestId("rendered").waitFor();
  },
  tensor: async (view) => {
    await view.tab("Tensors");
    const region = await view.tensor(SHOWN);
    await region.getByTestId("stats").waitFor();
  },
  memory: async (view) => {
    await view.tab("Memory");
  },
  compare: async (view) => {
    await view.tab("Compare");
    await view.idle();
    await view.page.evaluate((name) => {
      location.hash = `compare/${name}`;
    }, SHOWN);
    await view.page.getByTestId("comparison").waitFor();
  },
};

const temporary = mkdtempSync(join(tmpdir(), "gguf-native-pictures-"));
const browser = await launch();
try {
  const path = join(temporary, "model.gguf");
  writeFileSync(path, sampleForPage());
  const models = await writeModelsToCompare(temporary);
  for (const [screen, viewport] of Object.entries(SCREENS)) {
    for (const colorScheme of ["light", "dark"]) {
      for (const [name, show] of Object.entries(views)) {
        const picture = `${name}-${screen}-${colorScheme}`;
        if (option === undefined && !KEPT.includes(picture)) continue;
        const view = await ViewPage.open(browser, pageFileUrl, { viewport, colorScheme });
        await view.choose(...(name === "compare" ? models : [path]));
        await show(view);
        await view.idle();
        const file = join(root, folder, `${picture}.webp`);
        writeFileSync(file, await webp(view.page));
        console.log(`${relative(root, file)}: ${statSync(file).size} bytes`);
        await view.close();
      }
    }
  }
} finally {
  await browser.close();
  rmSync(temporary, { recursive: true, force: true });
}

/** A picture of what is in sight. Playwright itself has no WebP, which is a tenth of a PNG here: texts stay sharp at this quality. */
async function webp(page) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 7 });
  return Buffer.from(data, "base64");
}

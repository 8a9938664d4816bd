/** examples/embeddings/page, bundled and run in headless Chromium: it finds what the example finds in Node. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { Embedder } from "gguf-native/embeddings";
import { Index, passagesOf } from "../../examples/embeddings/search";
import { drop, expectNoViolations, noExamplePage, said, serveExamplePage } from "../support/example-page";
import { temporaryFolder } from "../support/paths";
import { sampleBert } from "../support/sample-bert";
import { pages, type ViewPage } from "../support/view-page";

const QUERY = "the cat in the browser";
const TEXT = Array.from({ length: 50 }, (_, i) => `${"the cat ".repeat(i % 7)}is number ${i}.`).join("\n\n");

const folder = temporaryFolder();
const model = join(folder, "sample.gguf");
writeFileSync(model, sampleBert());
const text = join(folder, "text.txt");
writeFileSync(text, TEXT);

/** What the page shows: what the example finds here. */
async function expectedPassages(): Promise<string[]> {
  using embedder = await Embedder.open(model);
  const index = new Index(embedder, passagesOf(TEXT));
  await index.build();
  const found = await index.search(QUERY, 10);
  return found.map(({ similarity, line, text: passage }) => `${similarity.toFixed(4)}, line ${line}${passage}`);
}

describe("the page that searches a text", { skip: noExamplePage, timeout: 300_000 }, () => {
  const { open } = pages(noExamplePage);
  let url: string;
  before(async () => {
    url = await serveExamplePage("embeddings/page", "search.js");
  });

  const choose = (view: ViewPage, label: string, path: string) => view.page.getByLabel(label).setInputFiles(path);

  test("finds what the example finds in Node, once and again", async () => {
    await using view = await open(url);
    const { page } = view;
    await choose(view, "Drop a model here", model);
    await said(view, "sample.gguf is open. No text yet.");
    await choose(view, "Drop a text here", text);
    await said(view, "50 passages were read in");
    await page.getByLabel("What to look for").fill(QUERY);
    for (let round = 0; round < 2; round++) {
      await page.getByRole("button", { name: "Search" }).click();
      await said(view, "Searched 50 passages in");
      assert.deepEqual(
        await page.getByRole("list", { name: "Passages" }).getByRole("listitem").allTextContents(),
        await expectedPassages(),
      );
    }
    await expectNoViolations(view);
  });

  test("takes the text first, and says what is wrong with a model", async () => {
    const bad = join(folder, "bad.gguf");
    writeFileSync(bad, "no model");
    await using view = await open(url);
    await choose(view, "Drop a text here", text);
    await said(view, "text.txt has 50 passages. No model yet.");
    await choose(view, "Drop a model here", bad);
    await said(view, /^Error: /);
    const search = view.page.getByRole("button", { name: "Search" });
    assert.equal(await search.isEnabled(), false);
    await choose(view, "Drop a model here", model);
    await said(view, "50 passages were read in");
    assert.equal(await search.isEnabled(), true);
  });

  test("reads a text that is dropped", async () => {
    await using view = await open(url);
    await choose(view, "Drop a model here", model);
    await said(view, "sample.gguf is open.");
    await drop(view, "drop-text", "dropped.txt", Buffer.from("one\n\ntwo"));
    await said(view, "2 passages were read in");
  });
});

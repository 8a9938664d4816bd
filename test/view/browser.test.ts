/**
 * The page to look at models, as it is used: in headless Chromium, from a file and over the server of `gguf-native view`.
 * `npm test -- --view` builds it first; `npm test` takes it where it is built.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { dequantizeSync, GgufWriter, openSync, parse, splitModel } from "gguf-native";
import type { Locator } from "playwright-core";
import { badFiles } from "../support/bad-files";
import { patch } from "../support/changes";
import { arr, str, u32, writeGguf } from "../support/gguf-writer";
import { ALL_TYPES, goldenPath, readGolden, WITHOUT_GOLDEN } from "../support/golden";
import { projectRoot, temporaryFolder, writeIn } from "../support/paths";
import { sampleModel } from "../support/sample-model";
import { needsShared, sharedPath, tinyLlama } from "../support/shared-data";
import {
  expectNothingSerious,
  factsOf,
  noPage,
  pageFileUrl,
  pagePath,
  pages,
  SCREENS,
  servePage,
  testLooks,
  type ViewPage,
} from "../support/view-page";
import { serveSite } from "../support/view-site";

// Not part of the package's interface: what the command line prints, and the page shows as well.
const { statsRows } = require(join(projectRoot, "dist", "describe", "stats-text.js")) as {
  statsRows(stats: object, options: { withStd: boolean }): [string, string][];
};

const TABS = ["Summary", "Metadata", "Vocabulary", "Tensors", "Compare", "Memory"];

const folder = temporaryFolder();

const write = (name: string, bytes: Uint8Array) => writeIn(folder, name, bytes);

/** What there is of the browser's own elements. */
interface PageElement {
  readonly textContent: string;
  scrollTop: number;
  readonly scrollHeight: number;
  getAttribute(name: string): string | null;
  querySelectorAll(selector: string): ArrayLike<PageElement>;
}

/** What the cells of a table say, without its heads. */
const cellsOf = (table: Locator): Promise<string[][]> =>
  table
    .locator("tbody tr")
    .evaluateAll((rows: PageElement[]) =>
      rows.map((row) => Array.from(row.querySelectorAll("td"), ({ textContent }) => textContent)),
    );

/** The numbers that are shown are those of the tensor, to the bit. */
async function expectValues(region: Locator, values: Float32Array, columns: number): Promise<void> {
  const table = region.getByTestId("values");
  await table.waitFor();
  const shown = await cellsOf(table);
  assert.ok(shown.length > 0);
  for (const [r, cells] of shown.entries()) {
    assert.ok(cells.length > 0);
    for (const [c, text] of cells.entries()) {
      const [number, expected] = [Math.fround(Number(text)), values[r * columns + c] as number];
      assert.ok(Object.is(number, expected) && text !== "", `row ${r}, column ${c}: ${text}, not ${expected}`);
    }
  }
}

describe("the page to look at models", { skip: noPage, timeout: 600_000 }, () => {
  const { open, openServed, openChosen } = pages();

  /** Every tab and a tensor of a model, compared with what the library says of the file. */
  async function expectModel(view: ViewPage, path: string): Promise<void> {
    const model = openSync(path);
    const facts = await factsOf(view.page.getByTestId("facts"));
    assert.equal(facts.Architecture, model.metadata.architecture);
    const metadata = await view.tab("Metadata");
    const found = (await metadata.getByTestId("matches").textContent())!;
    assert.match(found, new RegExp(`^${model.metadata.size} keys?$`));
    await metadata.getByRole("searchbox", { name: "Search metadata" }).fill("general.architecture");
    await metadata.getByRole("row", { name: /general\.architecture/ }).click();
    assert.equal(await metadata.getByTestId("value").textContent(), model.metadata.architecture);
    const vocabulary = await view.tab("Vocabulary");
    await vocabulary.getByRole("grid", { name: "Tokens" }).waitFor();
    const tensors = await view.tab("Tensors");
    await tensors.getByRole("searchbox", { name: "Search tensors" }).fill("attn_k.weight");
    for (const tensor of model.tensors.values()) {
      if (!tensor.name.endsWith("attn_k.weight")) continue;
      await tensors.getByRole("row").filter({ hasText: tensor.name }).click();
      const region = view.page.getByTestId("tensor");
      await region.getByRole("heading", { name: tensor.name, exact: true }).waitFor();
      await expectValues(region, tensor.dequantizeSync(), tensor.shape[0]!);
      await region.getByTestId("heatmap").waitFor();
      await region.getByTestId("histogram").waitFor();
      const stats = await factsOf(region.getByTestId("stats"));
      const expected = statsRows(tensor.statsSync(), { withStd: true });
      assert.deepEqual(
        Object.entries(stats).map(([name, text]) => [name.toLowerCase(), text]),
        expected.map(([name, text]) => [name.toLowerCase(), text]),
      );
    }
    await (await view.tab("Memory")).getByRole("table", { name: "Weights", exact: true }).waitFor();
    await (await view.tab("Compare")).waitFor();
    model.close();
  }

  const sample = write("sample.gguf", sampleModel());
  const models: [name: string, path: string, skip: string | false][] = [
    ["the sample", sample, false],
    ["the tiny llama", sharedPath(tinyLlama), needsShared(tinyLlama).skip],
  ];
  for (const [name, path, skip] of models) {
    test(`${name}, chosen on the page from a disk`, { skip }, async () => {
      await using view = await open(pageFileUrl);
      await view.page.getByRole("heading", { name: "Look into a model" }).waitFor();
      await view.choose(path);
      await expectModel(view, path);
    });
    test(`${name}, over the local server`, { skip }, async () => {
      await using view = await openServed([[path]]);
      await expectModel(view, path);
    });
  }
  test("a server that does not let the page read says what to do; there is a sample to open", async () => {
    const view = await open(pageFileUrl);
    const links = await view.page
      .getByRole("link")
      .evaluateAll((all: PageElement[]) => all.map((link) => link.getAttribute("href")));
    assert.match(links.join(" "), /^\?url=hf%3A\S+ https:\S+gguf-native$/);
    await view.page.getByRole("textbox", { name: "URL of a model" }).fill("https://example.com/a.gguf");
    await view.page.getByRole("button", { name: "Open", exact: true }).click();
    await view.alert.getByText(/CORS\). Download the file and choose it here; or run npx gguf-native view/).waitFor();
    await view.discard();
  });
  test("a file that is dropped", async () => {
    await using view = await open(pageFileUrl);
    const bytes = readFileSync(sample).toString("base64");
    await view.page.evaluate(`{
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(atob("${bytes}"), (c) => c.charCodeAt(0))], "dropped.gguf"));
      for (const type of ["dragenter", "dragover", "drop"]) {
        document.querySelector("main").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
      }
    }`);
    await view.opened();
    assert.equal(await view.name.textContent(), "dropped.gguf");
  });
  test("every type, to the bit", async () => {
    const golden = readGolden().filter(({ hash }) => hash !== undefined);
    const seen = new Set(golden.map(({ type }) => type));
    assert.deepEqual(seen, new Set(ALL_TYPES.filter((type) => !WITHOUT_GOLDEN.includes(type))));
    const shapes = openSync(goldenPath);
    await using view = await openServed([[goldenPath]]);
    for (const { name, type, blocks } of golden) {
      const region = await view.tensor(name);
      assert.ok((await region.textContent())!.includes(type));
      await expectValues(region, dequantizeSync(type, blocks), shapes.tensor(name).shape[0]!);
    }
  });
  test("a split model, from any of its files", async () => {
    const paths = await splitModel(sample, join(folder, "parts"), { maxTensors: 8 });
    const served = await open(await servePage([paths[1]!, ...paths.filter((_, i) => i !== 1)]));
    const chosen = await openChosen([...paths]);
    await served.opened();
    for (const view of [served, chosen]) {
      await expectModel(view, paths[0]!);
      await view.close();
    }
  });
  describe("two models side by side", () => {
    const changed = Buffer.from(sampleModel());
    for (const [name, share] of [
      ["blk.1.attn_k.weight", 1],
      ["blk.0.ffn_down.weight", 0.01],
    ] as const) {
      const { offset, byteLength } = parse(changed).tensor(name);
      changed.fill(0, offset, offset + Math.floor(byteLength * share));
    }
    const [model, other] = [parse(sampleModel()), parse(changed)];
    const path = write("changed.gguf", changed);
    const names = (grid: Locator) => grid.locator("[role=gridcell].c-name").allTextContents();

    test("open on Compare, the worst tensor first, and each is shown beside the list", async () => {
      await using view = await open(await servePage([sample], [path]));
      const panel = view.page.getByRole("tabpanel", { name: "Compare", exact: true });
      await panel.waitFor();
      assert.equal(await view.name.textContent(), "sample.gguf");
      assert.equal(await view.page.getByTestId("other-name").textContent(), "changed.gguf");
      assert.match(await view.page.title(), /^sample\.gguf and changed\.gguf/);
      await panel.getByText("exact").first().waitFor();
      await view.idle();
      const grid = panel.getByRole("grid", { name: "Differences" });
      assert.deepEqual((await names(grid)).slice(0, 2), ["blk.1.attn_k.weight", "blk.0.ffn_down.weight"]);
      const chart = await panel.getByTestId("noise").getAttribute("aria-label");
      assert.equal(chart, "Signal to noise by layer; the lowest is blk.1.attn_k.weight with 0.0 dB");
      const { snr, count, different } = await model
        .tensor("blk.0.ffn_down.weight")
        .compare(other.tensor("blk.0.ffn_down.weight"));
      const row = grid.getByRole("row").filter({ hasText: "blk.0.ffn_down.weight" });
      assert.ok((await row.textContent())!.includes(`${snr.toFixed(1)} dB`));
      await row.click();
      const region = view.page.getByTestId("pair");
      await region.getByRole("heading", { name: "blk.0.ffn_down.weight", exact: true }).waitFor();
      const numbers = await factsOf(region.getByTestId("comparison"));
      const text = [different, count].map((number) => number.toLocaleString("en-US")).join(" of ");
      assert.equal(numbers["Values that differ"], text);
      assert.equal(numbers["Signal to noise"], `${snr.toFixed(1)} dB`);
      // All of it is in sight, and so is the row, which is marked.
      for (const id of ["picture-a", "picture-b", "difference"]) {
        const box = (await region.getByTestId(id).boundingBox())!;
        assert.ok(box.y >= 0 && box.y + box.height <= SCREENS.desktop.height, `${id}: ${JSON.stringify(box)}`);
      }
      assert.equal(await row.getAttribute("aria-selected"), "true");
      // The weight behind a pixel, in both.
      await region.getByTestId("difference").hover();
      const tip = (
        await region
          .getByTestId("tip")
          .getByText(/^block [\d,]+, code/)
          .nth(1)
          .locator("..")
          .innerText()
      ).split("\n");
      const [at = 0, to = 0] = tip
        .at(-1)!
        .replaceAll(/(\d),(\d)/g, "$1$2")
        .match(/\d+/g)!
        .map(Number);
      const pointed = [model, other].map((each) => {
        const tensor = each.tensor("blk.0.ffn_down.weight");
        return tensor.dequantizeSync()[at * tensor.shape[0]! + to];
      });
      assert.deepEqual(
        [1, 4].map((line) => Math.fround(Number(tip[line]))),
        pointed,
        tip.join(),
      );
      // Both tensors have the same colours, and so has their difference, unless it is to have finer ones.
      const ends = async (): Promise<number[]> => {
        const all = await region.locator(".legend span:last-child").allTextContents();
        return all.map(Number);
      };
      const [a, b, difference] = await ends();
      assert.ok(a! > 0);
      assert.deepEqual([b, difference], [a, a]);
      const choice = region.getByLabel("Colours of A - B");
      await choice.selectOption("10 times finer");
      assert.ok(Math.abs((await ends())[2]! / a! - 0.1) < 0.001);
      await choice.selectOption("of its own");
      assert.ok((await ends())[2]! < a!);
      assert.deepEqual((await ends()).slice(0, 2), [a, a]);
      await view.page.waitForURL(/#compare\/blk\.0\.ffn_down\.weight$/);
      await view.page.goBack();
      await region.waitFor({ state: "detached" });
    });
    test("heads of columns sort, by keys too", async () => {
      await using view = await open(await servePage([sample], [path]));
      const grid = view.page.getByRole("grid", { name: "Differences" });
      await grid.getByText("exact").first().waitFor();
      await view.idle();
      const head = (name: string) => grid.getByRole("columnheader", { name, exact: true });
      assert.equal(await head("SNR").getAttribute("aria-sort"), "ascending");
      await head("Max error").getByRole("button").click();
      await view.page.waitForURL(/#compare\?order=error$/);
      assert.equal(await head("SNR").getAttribute("aria-sort"), null);
      assert.equal(await head("Max error").getAttribute("aria-sort"), "descending");
      const errors = (await grid.locator("[role=gridcell].c-error").allTextContents()).map(Number);
      assert.ok(errors[0]! > 0, `${errors}`);
      assert.deepEqual(
        errors,
        [...errors].sort((a, b) => b - a),
      );
      await head("Max error").getByRole("button").click();
      assert.equal(await head("Max error").getAttribute("aria-sort"), "ascending");
      await view.page.waitForURL(/#compare\?order=-error$/);
      await head("Name").getByRole("button").focus();
      await view.page.keyboard.press("Enter");
      await view.page.waitForURL(/#compare\?order=name$/);
      assert.equal((await names(grid))[0], "blk.0.attn_k.weight");
      assert.equal(await view.page.getByTestId("pair").count(), 0);
    });
    test("a dot of the chart opens its tensor; order, search and both tensors are in the address", async () => {
      const url = await servePage([sample], [path]);
      await using view = await open(
        `${url}#compare/blk.0.attn_k.weight?search=blk.*.attn_*&order=name&with=blk.0.attn_v.weight`,
      );
      const panel = view.page.getByRole("tabpanel", { name: "Compare", exact: true });
      const region = view.page.getByTestId("pair");
      await region.getByRole("heading", { name: "blk.0.attn_k.weight and blk.0.attn_v.weight" }).waitFor();
      await region.getByTestId("difference").waitFor();
      const grid = panel.getByRole("grid", { name: "Differences" });
      assert.equal((await names(grid))[0], "blk.0.attn_k.weight");
      assert.match((await panel.getByTestId("matches").textContent())!, /^10 of /);
      await view.idle();
      const dot = panel.getByTestId("noise").locator("path", { hasText: "blk.1.attn_k.weight: 0.0 dB" });
      await dot.dispatchEvent("click");
      await region.getByRole("heading", { name: "blk.1.attn_k.weight", exact: true }).waitFor();
      await view.page.waitForURL(/#compare\/blk\.1\.attn_k\.weight\?search=blk\.\*\.attn_\*&order=name$/);
    });
    test("that are chosen together open on Compare, too; a tensor of one alone is shown", async () => {
      const bytes = writeGguf({
        metadata: [],
        tensors: [{ name: "only", type: 0, shape: [8], bytes: new Uint8Array(32) }],
      });
      await using view = await openChosen([sample, write("only.gguf", bytes)]);
      const panel = view.page.getByRole("tabpanel", { name: "Compare", exact: true });
      await panel.getByRole("row").filter({ hasText: "blk.0.attn_q.weight" }).click();
      await view.page.getByTestId("pair").getByText("B has no tensor of this name.").waitFor();
      await view.page.getByTestId("picture-a").waitFor();
    });
  });

  describe("where one is, is in the address", () => {
    /** Waits until the address of the page ends as it should. */
    const expectAddress = async (view: ViewPage, end: string) => {
      await view.page.waitForURL((url) => url.href.endsWith(end));
    };
    test("of every tab, also on a new page, and back again", async () => {
      const url = await servePage([sample]);
      const view = await open(url);
      await view.opened();
      await expectAddress(view, "#summary");
      const metadata = await view.tab("Metadata");
      await metadata.getByRole("searchbox").fill("block");
      await metadata.getByRole("row").filter({ hasText: "llama.block_count" }).click();
      await expectAddress(view, "#metadata/llama.block_count?search=block");
      const tensors = await view.tab("Tensors");
      await tensors.getByRole("searchbox").pressSequentially("attn_q");
      await expectAddress(view, "#tensors?search=attn_q");
      await tensors.getByRole("combobox", { name: "Order" }).selectOption("size");
      await tensors.getByRole("row").filter({ hasText: "blk.1.attn_q.weight" }).click();
      const shown = "#tensors/blk.1.attn_q.weight?search=attn_q&order=size";
      await expectAddress(view, shown);
      const vocabulary = await view.tab("Vocabulary");
      await vocabulary.getByRole("searchbox").fill("a b");
      await expectAddress(view, "#vocabulary?search=a+b");
      const memory = await view.tab("Memory");
      await memory.getByLabel("Tokens of context").fill("1234");
      await expectAddress(view, "#memory?context=1234");

      const { page } = view;
      // Each place is one step, however much was typed there.
      await page.goBack();
      assert.equal(await page.getByRole("searchbox", { name: "Search tokens" }).inputValue(), "a b");
      await page.goBack();
      const region = page.getByTestId("tensor");
      await region.getByRole("heading", { name: "blk.1.attn_q.weight", exact: true }).waitFor();
      await page.goBack();
      await region.waitFor({ state: "detached" });
      assert.equal(await page.getByRole("combobox", { name: "Order" }).inputValue(), "size");
      await page.goBack();
      assert.equal(await page.getByRole("combobox", { name: "Order" }).inputValue(), "file");
      assert.equal(await page.getByRole("searchbox").inputValue(), "attn_q");
      await page.goBack();
      assert.equal(await page.getByTestId("value").textContent(), "2");
      await page.goForward();
      await page.getByRole("searchbox", { name: "Search tensors" }).waitFor();
      await view.close();

      await using other = await open(`${url}${shown}`);
      await other.page.getByTestId("tensor").getByRole("heading", { name: "blk.1.attn_q.weight" }).waitFor();
      assert.equal(await other.page.getByRole("searchbox").inputValue(), "attn_q");
      assert.equal(await other.page.getByRole("combobox", { name: "Order" }).inputValue(), "size");
      assert.match((await other.page.getByTestId("matches").textContent())!, /^2 of /);
    });
    test("of a model that is opened by its URL, and back to the one before", async () => {
      const url = await servePage([sample], [write("second.gguf", sampleModel())]);
      await using view = await open(url.replace(/&url=.*/, ""));
      await view.opened();
      const panel = await view.tab("Compare");
      await panel.getByRole("textbox", { name: "URL of another model" }).fill("model/1/second.gguf");
      await panel.getByRole("button", { name: "Open", exact: true }).click();
      await panel.getByRole("grid", { name: "Differences" }).waitFor();
      await expectAddress(view, "?url=model/0/sample.gguf&url=model/1/second.gguf#compare");
      await view.page.goBack();
      await panel.getByRole("grid", { name: "Differences" }).waitFor({ state: "detached" });
    });
    test("of what is not there says so", async () => {
      await using view = await open(`${await servePage([sample])}#tensors/nope`);
      await view.page.getByTestId("tensor").getByText("There is no tensor named nope in this file.").waitFor();
      await view.page.getByRole("tab", { name: "Metadata" }).click();
      await view.page.evaluate('location.hash = "#metadata/no%0Aope"');
      await view.alert.getByText("There is no key named no\\nope in this file.").waitFor();
    });
  });

  describe("the secret of the server", () => {
    /** The address has what it should, and nothing of the secret. */
    const expectPublic = (view: ViewPage, printed: string, end: string) =>
      view.page.waitForURL((url) => url.href === `${new URL(printed).origin}/${end}`);
    const heading = (view: ViewPage, name: string) =>
      view.page.getByTestId("tensor").getByRole("heading", { name, exact: true });
    const [first, second] = ["blk.0.attn_q.weight", "blk.1.attn_q.weight"];
    const query = "?url=model/0/sample.gguf";

    test("is not in the address, which loads again, goes back and forward", async () => {
      const printed = await servePage([sample]);
      await using view = await open(`${printed}#tensors/${first}?search=attn_q`);
      await heading(view, first).waitFor();
      const before = `${query}#tensors/${first}?search=attn_q`;
      await expectPublic(view, printed, before);
      await view.tensor(second);
      const after = `${query}#tensors/${second}`;
      await expectPublic(view, printed, after);
      for (let round = 0; round < 2; round++) {
        await view.page.reload();
        await heading(view, second).waitFor();
        await expectPublic(view, printed, after);
        await view.page.goBack();
        await heading(view, first).waitFor();
        await expectPublic(view, printed, before);
        assert.equal(await view.page.getByRole("searchbox").inputValue(), "attn_q");
        await view.page.goForward();
        await heading(view, second).waitFor();
        await expectPublic(view, printed, after);
      }
      // Away from the page, and back to it.
      await view.page.goto("about:blank");
      await view.page.goBack();
      await heading(view, second).waitFor();
      await expectPublic(view, printed, after);
    });
    test("is kept for a tab: two show two models, one without it says what to do", async () => {
      const [one, two] = [await servePage([sample]), await servePage([write("two.gguf", sampleModel())])];
      const view = await open(one);
      await view.opened();
      const other = await view.page.context().newPage();
      const name = other.getByTestId("model-name");
      for (const printed of [two, one]) {
        await other.goto(printed);
        await name.waitFor();
        await other.reload();
        await name.waitFor();
        await view.page.reload();
        await view.opened();
        assert.equal(await view.name.textContent(), "sample.gguf");
        assert.equal(await name.textContent(), printed === one ? "sample.gguf" : "two.gguf");
      }
      const address = view.page.url();
      const stranger = await view.page.context().newPage();
      await stranger.goto(address);
      const alert = stranger.getByRole("alert");
      assert.match((await alert.textContent())!, /start from the one that the command printed\.$/);
      assert.ok(await alert.isVisible());
      assert.equal(stranger.url(), address);
      const apart = await open(address);
      await apart.alert.waitFor();
      await expectNothingSerious(apart, "without the token");
      await apart.close();
      await view.discard();
    });
    test("stays in the address where the browser keeps nothing", async () => {
      const printed = await servePage([sample]);
      const view = await open("about:blank");
      await view.page.addInitScript(
        'Object.defineProperty(window, "sessionStorage", { get() { throw new DOMException("no", "SecurityError") } })',
      );
      await view.page.goto(printed);
      await view.opened();
      await view.page.reload();
      await view.opened();
      assert.equal(view.page.url().replace(/#.*/, ""), printed);
      await view.page.goto(new URL(`/${query}`, printed).href);
      await view.alert.waitFor();
      await view.discard();
    });
    test("is not in errors, also when another command has the port", async () => {
      const { startSession } = require(join(projectRoot, "dist", "view", "session.js"));
      const html = readFileSync(pagePath, "utf8");
      const site = await serveSite(html, [[sample]], 0, startSession);
      const view = await open(`${site.url}&url=model/7/nope.gguf`);
      const isPublic = async () => {
        const text = await view.page.locator("body").innerText();
        assert.doesNotMatch(text, /[\w-]{43}|127\.0\.0\.1/);
      };
      await view.alert.first().waitFor();
      await isPublic();
      await site.close();
      const next = await serveSite(html, [[sample]], site.port, startSession);
      await view.tab("Tensors");
      await view.page.evaluate(`location.hash = "#tensors/${first}"`);
      await view.page.getByTestId("tensor").getByRole("alert").first().waitFor();
      await isPublic();
      await view.page.reload();
      await view.page.getByText("start from the address that the command printed").waitFor();
      await isPublic();
      await view.page.goto(next.url);
      await view.opened();
      await view.page.reload();
      await view.opened();
      assert.equal(await view.name.textContent(), "sample.gguf");
      await view.discard();
    });
  });

  describe("files that are bad give an error", () => {
    test("each the one that the library gives", async () => {
      await using view = await open(pageFileUrl);
      for (const { name, message, offset, bytes } of badFiles.filter((_, i) => i % 3 === 0)) {
        await view.page.reload();
        await view.choose(write("bad.gguf", bytes));
        const text = (await view.alert.first().textContent()) ?? "";
        assert.match(text, message, name);
        assert.ok(text.includes(`(at byte ${offset})`), `${name}: ${text}`);
      }
    });
  });

  describe("text of a file stays text", () => {
    const MARKUP = [
      '<img src=x onerror="alert(1)">',
      "</script><script>alert(1)</script>",
      "</style><svg onload=alert(1)>",
      '"><iframe src=https://example.com>',
      "<a href=javascript:alert(1)>x</a>",
      "&lt;b&gt;",
      "{{constructor}}",
      "__proto__",
      "constructor",
      "#x/../?y",
      "a\u202eb\u2066c\u200fd",
      "h\u200bi\u00add\u3164d\ufe0fe\u{e0041}n",
      "n\0u\x07l\x1b[31m\nl\r\u2028",
      "%3Cimg%20src=x%3E",
      "long ".repeat(2000),
      "\ufeff\ufffd\ud7ff",
    ];
    const hostile = writeGguf({
      metadata: [
        ["general.architecture", str(MARKUP[0]!)],
        ["general.name", str(MARKUP[1]!)],
        ["tokenizer.ggml.model", str(MARKUP[2]!)],
        ["tokenizer.ggml.tokens", arr("string", MARKUP)],
        ["tokenizer.chat_template", str(MARKUP.join("\n"))],
        ...MARKUP.map((text): [string, ReturnType<typeof str>] => [`key ${text}`, str(text)]),
        ["list", arr("string", MARKUP)],
        [`${MARKUP[0]}.context_length`, u32(128)],
      ],
      tensors: MARKUP.map((text, i) => ({
        name: i % 2 ? text : `blk.${i}.${text}`,
        type: 0,
        shape: [8],
        bytes: new Uint8Array(32),
      })),
    });

    async function expectText(view: ViewPage): Promise<void> {
      for (const tab of TABS) {
        const panel = await view.tab(tab);
        await view.idle();
        const grid = panel.getByRole("grid");
        for (let i = 0; i < (await grid.count()); i++) {
          await grid.nth(i).focus();
          for (let row = 0; row < MARKUP.length + 8; row++) {
            await view.page.keyboard.press("Enter");
            await view.page.keyboard.press("ArrowDown");
          }
        }
        await view.idle();
        if (tab === "Metadata") assert.ok((await panel.textContent())!.includes("<img src=x onerror="));
      }
      const foreign = await view.page.evaluate(
        `document.querySelectorAll("main img, main script, main style, main iframe, main a[href], main b, [onload], [onerror]").length`,
      );
      assert.equal(foreign, 0);
      // What would turn text around, or hide it, is shown by its number.
      const text = (await view.page.evaluate("document.documentElement.innerText + document.title")) as string;
      assert.doesNotMatch(text, /\p{Default_Ignorable_Code_Point}/u);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
      assert.doesNotMatch(text, /[\0-\x08\x0b-\x1f\x7f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
      await view.close();
    }
    test("in a file that is chosen", async () => {
      const view = await openChosen([write("<img src=x onerror=alert(1)>.gguf", hostile)]);
      await expectText(view);
    });
    test("over the local server", async () => {
      const view = await openServed([[write("<svg onload=alert(1)> '&\u202e%41.gguf", hostile)]]);
      await expectText(view);
    });
    test("in the address of the page", async () => {
      const url = await servePage([sample]);
      for (const address of [
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "file:///etc/passwd",
      ]) {
        const place = new URL(url);
        place.searchParams.set("url", address);
        place.hash = `#tensors/${encodeURIComponent("<img src=x onerror=alert(1)>")}`;
        const view = await open(place.href);
        await view.alert.first().waitFor();
        assert.equal(await view.page.locator("main img").count(), 0);
        const missing = view.problems.filter((problem) => !/status of 404/.test(problem));
        assert.deepEqual(missing, []);
        await view.discard();
      }
    });
  });

  describe("a file that changes while it is shown gives an error, and no numbers", () => {
    const change = (path: string) => patch(path, Buffer.alloc(2_000_000), 500_000);
    async function expectNoNumbers(view: ViewPage): Promise<void> {
      const region = await view.tensor("blk.1.attn_k.weight");
      await region.getByRole("alert").first().waitFor();
      await view.idle();
      for (const part of ["values", "stats", "histogram", "heatmap", "scales"]) {
        assert.equal(await region.getByTestId(part).count(), 0, part);
      }
    }
    test("over the local server", async () => {
      const path = write("changed.gguf", sampleModel());
      const view = await openServed([[path]]);
      await view.tab("Tensors");
      const first = await view.tensor("blk.0.attn_k.weight");
      await first.getByTestId("values").waitFor();
      await view.idle();
      change(path);
      await expectNoNumbers(view);
      // The browser itself reports answers that are errors.
      const matching = view.problems.filter((problem) => !/status of 4(10|16)/.test(problem));
      assert.deepEqual(matching, []);
      await view.discard();
    });
    test("a chosen file", async () => {
      const path = write("chosen.gguf", sampleModel());
      await using view = await openChosen([path]);
      change(path);
      await expectNoNumbers(view);
    });
  });

  test("everything is reached with the keyboard", async () => {
    await using view = await openServed([[sample]]);
    const { keyboard } = view.page;
    const focused = () =>
      view.page.evaluate(`{
        const { role, ariaLabel, textContent, tagName } = Object.assign(document.activeElement, {});
        const label = document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent;
        [document.activeElement.getAttribute("role") ?? document.activeElement.type ?? tagName, label.trim()].join(" ");
      }`) as Promise<string>;
    const tabTo = async (wanted: string) => {
      const passed: string[] = [];
      for (let i = 0; i < 20; i++) {
        await keyboard.press("Tab");
        passed.push(await focused());
        if (passed.at(-1) === wanted) return;
      }
      assert.fail(`${wanted} was not reached: ${passed.join(", ")}`);
    };
    await tabTo("tab Summary");
    for (const tab of TABS.slice(1)) {
      await keyboard.press("ArrowRight");
      assert.equal(await focused(), `tab ${tab}`);
      await view.page.getByRole("tabpanel", { name: tab, exact: true }).waitFor();
    }
    await keyboard.press("Home");
    assert.equal(await focused(), "tab Summary");
    for (let i = 0; i < 3; i++) await keyboard.press("ArrowRight");
    await tabTo("search Search tensors");
    await keyboard.type("attn_q");
    await tabTo("grid Tensors");
    await keyboard.press("End");
    await keyboard.press("Enter");
    const region = view.page.getByTestId("tensor");
    await region.getByRole("heading", { name: "blk.1.attn_q.weight", exact: true }).waitFor();
    await tabTo("button Close");
    await keyboard.press("Enter");
    await region.waitFor({ state: "detached" });
  });

  test("keys: / searches, arrows go to the list, Escape empties the search and closes", async () => {
    await using view = await openServed([[sample]]);
    const { keyboard } = view.page;
    const panel = await view.tab("Tensors");
    const search = panel.getByRole("searchbox");
    const grid = panel.getByRole("grid", { name: "Tensors" });
    const isFocused = (locator: Locator) => locator.and(view.page.locator(":focus")).waitFor();
    const region = view.page.getByTestId("tensor");
    await keyboard.press("/");
    await isFocused(search);
    await keyboard.type("BLK.*.attn_q*");
    assert.equal(await panel.getByTestId("matches").textContent(), "2 of 20 tensors");
    await keyboard.press("ArrowDown"); // past the title of the block
    await isFocused(grid);
    await keyboard.press("Enter");
    await region.getByRole("heading", { name: "blk.0.attn_q.weight", exact: true }).waitFor();
    await keyboard.press("Escape");
    await region.waitFor({ state: "detached" });
    await isFocused(grid);
    await keyboard.press("/");
    await isFocused(search);
    await keyboard.press("Escape");
    assert.equal(await search.inputValue(), "");
    assert.equal(await panel.getByTestId("matches").textContent(), "20 tensors");
    await keyboard.type("a/b"); // in the search box it is a character
    assert.equal(await search.inputValue(), "a/b");
    await panel.getByRole("gridcell", { name: 'Nothing has "a/b".' }).waitFor();
    await keyboard.press("Escape");
    await keyboard.press("Escape");
    assert.equal(await view.page.evaluate("document.activeElement === document.body"), true);
    await keyboard.press("?");
    const help = view.page.getByRole("dialog", { name: "Keys and theme" });
    await help.getByText("to the search box").waitFor();
    await expectNothingSerious(view, "keys");
    const theme = () => view.page.evaluate("document.documentElement.dataset.theme");
    await help.getByLabel("Theme").selectOption("Dark");
    assert.equal(await theme(), "dark");
    await view.page.reload();
    assert.equal(await theme(), "dark");
  });

  test("tabs stay where they are, and the button to close stays in sight", async () => {
    for (const viewport of Object.values(SCREENS)) {
      const view = await openServed([[sample]], { viewport });
      const boxes = () =>
        view.page
          .getByRole("tab")
          .evaluateAll((tabs: { offsetLeft: number }[]) => tabs.map(({ offsetLeft }) => offsetLeft));
      const before = await boxes();
      await view.tab("Tensors");
      assert.deepEqual(await boxes(), before);
      const region = await view.tensor("blk.0.attn_q.weight");
      await view.idle();
      await region.evaluate((element: PageElement) => {
        element.scrollTop = element.scrollHeight;
      });
      const close = region.getByRole("button", { name: "Close" });
      const [button, whole] = [(await close.boundingBox())!, (await region.boundingBox())!];
      assert.ok(button.y >= whole.y && button.y < whole.y + 20, JSON.stringify([button, whole]));
      await view.close();
    }
  });

  describe("200,000 tensors", () => {
    const path = join(folder, "many.gguf");
    const count = 200_000;
    before(async () => {
      if (noPage) return;
      const writer = new GgufWriter();
      const value = new Float32Array(1);
      for (let i = 0; i < count; i++)
        writer.addTensor(i % 2 ? `blk.${i >> 5}.t${i}` : `t${i}.weight`, "F32", [1], value);
      await writer.write(path);
    });

    test("only rows in sight are elements; the last one is reached", async () => {
      await using view = await openChosen([path]);
      const panel = await view.tab("Tensors");
      const grid = panel.getByRole("grid", { name: "Tensors" });
      const rows = Number(await grid.getAttribute("aria-rowcount"));
      assert.ok(rows >= count, `${rows} rows`);
      const elements = grid.getByRole("row");
      const isThere = async (row: number) => {
        await grid.locator(`[role=row][aria-rowindex="${row}"]`).waitFor();
        const shown = await elements.count();
        assert.ok(shown > 5 && shown < 120, `${shown} rows are elements`);
      };
      await isThere(2);
      await grid.focus();
      await view.page.keyboard.press("End");
      await isThere(rows);
      await view.page.keyboard.press("PageUp");
      await view.page.keyboard.press("Home");
      await isThere(2);
      // By the wheel and the scroll bar, down and up again.
      for (const share of [0.1, 0.5, 0.9, 1, 0.3, 0]) {
        await grid.evaluate((element: PageElement, part: number) => {
          element.scrollTop = part * element.scrollHeight;
        }, share);
        while (Math.abs((await firstRow(grid)) - share * rows) > rows / 100) await delay(10);
        await isThere(share === 1 ? rows : await firstRow(grid));
      }
      await panel.getByRole("searchbox", { name: "Search tensors" }).fill("t199999");
      await elements.filter({ hasText: "t199999" }).click();
      const region = view.page.getByTestId("tensor");
      await region.getByRole("heading", { name: `blk.${199_999 >> 5}.t199999`, exact: true }).waitFor();
      await expectValues(region, new Float32Array(1), 1);
    });
  });

  testLooks("axe finds nothing serious", async (options) => {
    await using view = await open(pageFileUrl, options);
    const expectNothing = (where: string) => expectNothingSerious(view, where);
    await expectNothing("start");
    await view.choose(sample);
    for (const tab of TABS) {
      await view.tab(tab);
      await view.idle();
      await expectNothing(tab);
    }
    await view.tab("Metadata");
    await view.page.getByRole("row").filter({ hasText: "tokenizer.ggml.tokens" }).click();
    await view.page.getByTestId("value").waitFor();
    await expectNothing("a value");
    await view.tab("Tensors");
    await view.tensor("blk.0.attn_q.weight");
    await view.idle();
    await expectNothing("a tensor");
    await view.tab("Compare");
    await view.page.getByTestId("compare-file").setInputFiles(write("axe-other.gguf", sampleModel()));
    await view.page.getByTestId("noise").waitFor();
    await view.idle();
    await expectNothing("two models");
    await view.page.getByRole("row").filter({ hasText: "blk.0.attn_q.weight" }).click();
    await view.page.getByTestId("comparison").waitFor();
    await view.idle();
    await expectNothing("two tensors");
    await view.page.reload();
    await view.choose(write("axe.gguf", Buffer.from("no model")));
    await expectNothing("an error");
  });
});

/** The number of the first row that is in sight, after the head. */
async function firstRow(grid: Locator): Promise<number> {
  const numbers = await grid
    .locator("[role=row]")
    .evaluateAll((rows: PageElement[]) => rows.map((row) => Number(row.getAttribute("aria-rowindex"))));
  return Math.min(...numbers.filter((row) => row > 1));
}

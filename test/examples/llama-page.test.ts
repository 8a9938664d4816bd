/** examples/browser, bundled and run in headless Chromium: the same text as in Node. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { openSync } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { Llama } from "../../examples/llama/model";
import { greedy, write } from "../../examples/llama/write";
import { runNode } from "../support/child";
import { drop, expectNoViolations, noExamplePage, said, serveExamplePage } from "../support/example-page";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sampleModel } from "../support/sample-model";
import { pages, type ViewPage } from "../support/view-page";

const PROMPT = "token7 token8 token9";
const TOKENS = 24;

const folder = temporaryFolder();
const model = join(folder, "sample.gguf");
writeFileSync(model, sampleModel());

/** What the example writes here. */
function expectedText(): string {
  using file = openSync(model);
  const tokenizer = new Tokenizer(file.metadata);
  const written = write(Llama.load(file), tokenizer, [...tokenizer.encode(PROMPT)], TOKENS, greedy);
  return PROMPT + Array.from(written, ({ text }) => text).join("");
}

describe("the page that writes text", { skip: noExamplePage, timeout: 300_000 }, () => {
  const { open } = pages(noExamplePage);
  let url: string;
  before(async () => {
    url = await serveExamplePage("browser", "llama.js");
  });

  /** Opens the page with a file, and waits for what it says of it. */
  async function openWith(path: string, status: string | RegExp): Promise<ViewPage> {
    const view = await open(url, { acceptDownloads: true });
    await view.page.getByLabel("Drop a model here").setInputFiles(path);
    await said(view, status);
    return view;
  }

  /** Asks for so many tokens after a text. */
  async function ask({ page }: ViewPage, tokens: number): Promise<void> {
    await page.getByLabel("Beginning of the text").fill(PROMPT);
    await page.getByLabel("Tokens to add").fill(String(tokens));
    await page.getByRole("button", { name: "Write" }).click();
  }

  test("writes what the example writes in Node, once and again", async () => {
    await using view = await openWith(model, "sample.gguf is open.");
    const { page } = view;
    for (let round = 0; round < 2; round++) {
      await ask(view, TOKENS);
      const status = page.getByRole("status").filter({ hasText: `${TOKENS} written at` });
      await status.waitFor();
      const found = (await status.textContent()) ?? "";
      assert.match(found, /^\d+ tokens read at [\d.]+ tokens\/s, 24 written at [\d.]+ tokens\/s\.$/);
      assert.equal(await page.getByRole("region", { name: "Text" }).textContent(), expectedText());
    }
  });

  test("writes the receipt that the example writes in Node, and checks it", async () => {
    await using view = await openWith(model, "sample.gguf is open.");
    const { page } = view;
    await ask(view, 3);
    await said(view, "3 written at");
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save its receipt" }).click();
    const path = join(folder, "receipt.json");
    await (await download).saveAs(path);
    const inNode = join(folder, "node.json");
    const program = join(projectRoot, "build", "examples", "llama.js");
    runNode([program, model, "--prompt", PROMPT, "--tokens", "3", "--receipt", inNode]);
    const receipt = readFileSync(path, "utf8");
    assert.equal(receipt, readFileSync(inNode, "utf8"));
    await page.getByLabel("Check a receipt").setInputFiles(path);
    await said(view, "The logits of all tokens have the bits of the receipt.");
    writeFileSync(path, receipt.replace(/"count": 3/, '"count": 2'));
    await page.getByLabel("Check a receipt").setInputFiles(path);
    await said(view, /^Error: token 3 differs: in the receipt \d+ of logits [0-9a-f]+, here the end$/);
  });

  test("computes with all processors", { skip: availableParallelism() === 1 && "there is one" }, async () => {
    await using view = await openWith(model, /sample\.gguf is open\. \d+ threads compute\./);
    assert.equal(await view.page.evaluate("crossOriginIsolated"), true);
  });

  test("stops when it is told to, and goes on with another text", async () => {
    await using view = await openWith(model, "sample.gguf is open.");
    const { page } = view;
    await ask(view, 2000);
    await page.getByRole("button", { name: "Stop" }).click();
    await said(view, "written at");
    const text = (await page.getByRole("region", { name: "Text" }).textContent()) ?? "";
    assert.ok(text.startsWith(PROMPT) && text.split(" ").length < 2000, text.slice(0, 100));
    await page.getByRole("button", { name: "Write" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Write" }).isEnabled(), true);
  });

  test("says what is wrong with a file, and with a prompt", async () => {
    const bad = join(folder, "bad.gguf");
    writeFileSync(bad, "no model");
    await using view = await openWith(bad, /^Error: /);
    const { page } = view;
    assert.equal(await page.getByRole("button", { name: "Write" }).isEnabled(), false);
    await page.getByLabel("Drop a model here").setInputFiles(model);
    await said(view, "is open");
    await ask(view, 99_999);
    await said(view, "does not fit in the model's context");
    assert.equal(await page.getByRole("button", { name: "Write" }).isEnabled(), true);
  });

  test("opens a file that is dropped", async () => {
    await using view = await open(url);
    await drop(view, "drop", "dropped.gguf", sampleModel());
    await said(view, "dropped.gguf is open.");
  });

  test("axe finds nothing, and the keyboard reaches everything", async () => {
    await using view = await openWith(model, "sample.gguf is open.");
    await expectNoViolations(view);
    const reached: unknown[] = [];
    for (let i = 0; i < 4; i++) {
      await view.page.keyboard.press("Tab");
      reached.push(await view.page.evaluate("document.activeElement.id"));
    }
    assert.deepEqual(reached, ["file", "prompt", "tokens", "write"]);
  });
});

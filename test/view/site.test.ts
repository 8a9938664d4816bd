/** build/site: the page and a sample model, put into a folder of any server of static files. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { openSync } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { projectRoot } from "../support/paths";
import { answerRange, type Handler, serve } from "../support/range-server";
import { noPage, pagePath, pages } from "../support/view-page";

const site = join(projectRoot, "build", "site");
const names: Record<string, string> = { "/a/folder/": "index.html", "/a/folder/sample.gguf": "sample.gguf" };
const noSite = noPage || (!existsSync(join(site, "sample.gguf")) && "build/site is not made (npm run build -- view)");

/** A server that knows ranges, as most do, or sends whole files only. */
const answer =
  (knowsRanges: boolean): Handler =>
  (request, response) => {
    const name = names[(request.url as string).replace(/\?.*$/, "")];
    if (name === undefined) {
      response.writeHead(404).end();
      return;
    }
    const content = readFileSync(join(site, name));
    const type = name.endsWith(".html") ? "text/html" : "application/octet-stream";
    if (knowsRanges && request.headers.range !== undefined) answerRange(request, response, content);
    else response.writeHead(200, { "content-type": type, "content-length": content.length }).end(content);
  };

describe("the page on a static site", { skip: noSite, timeout: 300_000 }, () => {
  const { open } = pages();

  test("is the page of the package", () => {
    const page = readFileSync(join(site, "index.html"), "utf8").replace(' data-sample="sample.gguf"', "");
    assert.equal(page, readFileSync(pagePath, "utf8"));
  });
  for (const knowsRanges of [true, false]) {
    test(`shows its sample, from a server ${knowsRanges ? "with" : "without"} ranges`, async () => {
      const { url, requests } = await serve(answer(knowsRanges));
      const view = await open(new URL("/a/folder/", url).href);
      await view.page.getByRole("link", { name: "Look at a sample model" }).click();
      await view.opened();
      assert.equal(await view.name.textContent(), "sample.gguf");
      const { metadata } = openSync(join(site, "sample.gguf"));

      await view.tab("Vocabulary");
      await view.page.getByRole("textbox", { name: "Text to tokens" }).fill("The weights of a model");
      const ids = view.page.getByTestId("tokens").locator(".token-id");
      await ids.first().waitFor();
      const expected = new Tokenizer(metadata).encode("The weights of a model");
      assert.deepEqual(await ids.allTextContents(), Array.from(expected, String));
      assert.ok(expected.length < 10);

      const panel = await view.tab("Metadata");
      await panel.getByRole("searchbox", { name: "Search metadata" }).fill("chat_template");
      await panel.getByRole("row", { name: /chat_template/ }).click();
      await view.page.getByTestId("rendered").getByText("<|im_start|>assistant").waitFor();

      await view.tab("Tensors");
      const region = await view.tensor("blk.1.attn_q.weight");
      await region.getByTestId("heatmap").waitFor();
      await view.idle();
      await view.close();
      assert.deepEqual(
        requests.filter(({ url = "" }) => names[url.replace(/\?.*$/, "")] === undefined).map(({ url }) => url),
        [],
      );
    });
  }
});

/** Pages of the examples, bundled and served, in headless Chromium. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { bundleFile, ISOLATED, noChromium } from "./browser";
import { projectRoot } from "./paths";
import type { ViewPage } from "./view-page";
import { needsModule } from "./wasm";

/** Why such pages cannot be tested here, or false: the value of `skip` of a test. */
export const noExamplePage: string | false = needsModule.skip || noChromium;

/** Serves the page of a folder of `examples`, isolated, and its program as `script`, as long as the process runs. */
export async function serveExamplePage(folder: string, script: string): Promise<string> {
  const pages = join(projectRoot, "examples", folder);
  const { outputFiles, warnings } = bundleFile(join(pages, "main.mjs"), projectRoot);
  assert.deepEqual(warnings, []);
  const answers: Record<string, [type: string, body: Uint8Array]> = {
    "/": ["text/html", readFileSync(join(pages, "index.html"))],
    [`/${script}`]: ["text/javascript", outputFiles[0]!.contents],
  };
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? ""];
    if (answer === undefined) response.writeHead(404).end();
    else response.writeHead(200, { "content-type": answer[0], ...ISOLATED }).end(answer[1]);
  });
  server.unref();
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** Drops a file on an element. */
export const drop = ({ page }: ViewPage, id: string, name: string, bytes: Uint8Array): Promise<unknown> =>
  page.evaluate(`{
    const transfer = new DataTransfer();
    const bytes = Uint8Array.from(atob("${Buffer.from(bytes).toString("base64")}"), (char) => char.charCodeAt(0));
    transfer.items.add(new File([bytes], "${name}"));
    const drop = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
    document.getElementById("${id}").dispatchEvent(drop);
  }`);

/** Waits for what the page says. */
export const said = ({ page }: ViewPage, status: string | RegExp): Promise<void> =>
  page.getByRole("status").filter({ hasText: status }).waitFor();

/** Axe finds nothing at all. */
export async function expectNoViolations({ page }: ViewPage): Promise<void> {
  await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const violations = await page.evaluate("axe.run().then(({ violations }) => violations.map(({ id }) => id))");
  assert.deepEqual(violations, []);
}

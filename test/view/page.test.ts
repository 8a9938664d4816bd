/** The sources of the page, and the page as it is built: text stays text, and nothing is loaded from elsewhere. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { projectRoot } from "../support/paths";

const folder = join(projectRoot, "view");
const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));

describe("the sources of the page", () => {
  test("are found", () => assert.ok(sources.length > 20));
  for (const name of sources) {
    test(`${name} makes text nodes only`, () => {
      const text = readFileSync(join(folder, name), "utf8");
      const forbidden =
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|createContextualFragment|\beval\b|new Function/;
      assert.doesNotMatch(text, forbidden);
    });
  }
});

const built = join(projectRoot, "dist", "view", "index.html");
const skip = !existsSync(built) && "the page is not built (npm run build:wasm && npm run build -- view)";

describe("the page", { skip }, () => {
  const html = skip ? "" : readFileSync(built, "utf8");
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? "";
  const allowed = (directive: string) => policy.split("; ").find((part) => part.startsWith(`${directive} `));
  const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const contents = (element: string) =>
    [...html.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, "gs"))].map(([, text]) => text as string);

  test("allows its own script and style, and no others", () => {
    const [scripts, styles] = [contents("script"), contents("style")];
    assert.equal(scripts.length, 1);
    assert.equal(styles.length, 1);
    assert.equal(html.match(/<script/gi)?.length, 1);
    assert.equal(allowed("script-src"), `script-src ${hash(scripts[0]!)} 'wasm-unsafe-eval'`);
    assert.equal(allowed("style-src"), `style-src ${hash(styles[0]!)}`);
    assert.equal(allowed("default-src"), "default-src 'none'");
    assert.equal(allowed("worker-src"), "worker-src blob:");
    assert.doesNotMatch(policy, /unsafe-(inline|eval)(?<!wasm-unsafe-eval)/);
  });

  test("uses nothing of Node", () => {
    assert.doesNotMatch(html, /\bBuffer\.|\brequire\(|"node:/);
  });

  test("loads nothing", () => {
    const head = html.replace(/<(script|style)>.*?<\/\1>/gs, "");
    for (const [, url] of head.matchAll(/(?:src|href)="([^"]*)"/g)) assert.match(url as string, /^data:/);
    assert.doesNotMatch(contents("style")[0] as string, /url\(|@import/);
  });

  test("is of reasonable size", () => {
    assert.ok(html.length > 100_000 && html.length < 830_000, `${html.length}`);
  });
});

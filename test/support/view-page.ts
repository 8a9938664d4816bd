/** The page to look at models, as it was built, in headless Chromium. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  type Browser,
  type BrowserContextOptions,
  type Locator,
  type Page,
  chromium as playwright,
} from "playwright-core";
import { browserEnvironment, chromium, noChromium } from "./browser";
import { projectRoot } from "./paths";
import { type SiteModel, serveSite } from "./view-site";

export const pagePath = join(projectRoot, "dist", "view", "index.html");
export const pageFileUrl = pathToFileURL(pagePath).href;

/** Why the page cannot be tested here, or false: the value of `skip` of a test. */
export const noPage: string | false =
  noChromium || (!existsSync(pagePath) && "the page is not built (npm run build:wasm && npm run build -- view)");

/** No sandbox, which root cannot have: the page is our own. No name leads anywhere. */
const FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"],
  ...["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
];

/** More than anything takes, on a busy machine. */
const TIMEOUT_MS = 60_000;

export function launch(): Promise<Browser> {
  return playwright.launch({
    executablePath: chromium as string,
    args: FLAGS,
    timeout: TIMEOUT_MS,
    env: browserEnvironment,
  });
}

/** The widths at which people look. */
export const SCREENS = {
  phone: { width: 390, height: 844 },
  desktop: { width: 1280, height: 900 },
} as const;

/** A test at each width, light and dark. */
export function testLooks(name: string, run: (options: BrowserContextOptions) => Promise<void>): void {
  for (const [screen, viewport] of Object.entries(SCREENS)) {
    for (const colorScheme of ["light", "dark"] as const)
      test(`${name}: ${screen}, ${colorScheme}`, () => run({ viewport, colorScheme }));
  }
}

/** A page in a window of its own, and everything about it that should not be. */
export class ViewPage {
  readonly page: Page;
  /** Errors, warnings, dialogs, and requests to anywhere but the page's own site. */
  readonly problems: string[] = [];

  private constructor(page: Page) {
    this.page = page;
  }

  /** @param script runs in the page before its own */
  static async open(
    browser: Browser,
    url: string,
    options: BrowserContextOptions = {},
    script = "",
  ): Promise<ViewPage> {
    const context = await browser.newContext({
      viewport: SCREENS.desktop,
      ...{ reducedMotion: "reduce", acceptDownloads: false, ...options },
    });
    context.setDefaultTimeout(TIMEOUT_MS);
    await context.addInitScript(script);
    const view = new ViewPage(await context.newPage());
    view.#watch(new URL(url));
    await view.page.goto(url);
    return view;
  }

  #watch({ protocol, origin }: URL): void {
    const { page, problems } = this;
    const own = protocol === "file:" ? pageFileUrl : `${origin}/`;
    page.on("console", (message) => {
      if (["error", "warning", "assert"].includes(message.type())) problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => problems.push(`error: ${error.stack}`));
    page.on("crash", () => problems.push("crash"));
    page.on("dialog", (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.context().on("page", (other) => problems.push(`window: ${other.url()}`));
    page.context().on("request", (request) => {
      if (!/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(own)) {
        problems.push(`request: ${request.url()}`);
      }
    });
  }

  /** Closes the window. */
  async discard(): Promise<void> {
    await this.page.context().close();
  }

  /** Closes the window; nothing went wrong in it. */
  async close(): Promise<void> {
    await this.discard();
    assert.deepEqual(this.problems, []);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get name(): Locator {
    return this.page.getByTestId("model-name");
  }

  get alert(): Locator {
    return this.page.getByRole("alert");
  }

  /** Chooses files, and waits for the model or an error. */
  async choose(...paths: string[]): Promise<void> {
    await this.page.getByTestId("file").first().setInputFiles(paths);
    await this.opened();
  }

  /** Waits for the model or an error. */
  async opened(): Promise<void> {
    await this.name.or(this.alert).first().waitFor();
  }

  async tab(name: string): Promise<Locator> {
    await this.page.getByRole("tab", { name, exact: true }).click();
    const panel = this.page.getByRole("tabpanel", { name, exact: true });
    await panel.waitFor();
    return panel;
  }

  /** Shows a tensor by its address. */
  async tensor(name: string): Promise<Locator> {
    await this.page.evaluate(`location.hash = "#tensors/" + ${JSON.stringify(encodeURIComponent(name))}`);
    const region = this.page.getByTestId("tensor");
    await region.getByRole("heading", { name, exact: true }).waitFor();
    return region;
  }

  /** Waits until no work is under way. */
  async idle(): Promise<void> {
    await this.page.getByRole("progressbar").first().waitFor({ state: "detached" });
  }
}

/** Opens pages in a browser that is there for the tests of the calling `describe`. */
export function pages(skip: string | false = noPage) {
  let browser: Browser;
  before(async () => {
    if (!skip) browser = await launch();
  });
  after(() => browser?.close());
  const open = (url: string, options?: BrowserContextOptions) => ViewPage.open(browser, url, options);
  /** The page over the local server. */
  const openServed = async (models: readonly SiteModel[], options?: BrowserContextOptions) => {
    const view = await open(await servePage(...models), options);
    await view.opened();
    return view;
  };
  /** The page from a file, and models from a disk. */
  const openChosen = async (paths: readonly string[], options?: BrowserContextOptions) => {
    const view = await open(pageFileUrl, options);
    await view.choose(...paths);
    return view;
  };
  return { open, openServed, openChosen };
}

/** The page over the local server, with models. */
export async function servePage(...models: SiteModel[]): Promise<string> {
  const { startSession } = require(join(projectRoot, "dist", "view", "session.js"));
  return (await serveSite(readFileSync(pagePath, "utf8"), models, 0, startSession)).url;
}

/** The facts of a `<dl>` by their names, once it is there. */
export async function factsOf(list: Locator): Promise<Record<string, string>> {
  await list.waitFor();
  const [names, values] = await Promise.all([
    list.locator("dt").allTextContents(),
    list.locator("dd").allTextContents(),
  ]);
  assert.equal(names.length, values.length);
  return Object.fromEntries(names.map((name, i) => [name, values[i] as string]));
}

/** What is in sight is accessible, as far as axe can tell, and no wider than the window. */
export async function expectNothingSerious({ page }: ViewPage, where: string): Promise<void> {
  await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const found = (await page.evaluate(
    `axe.run().then(({ violations }) => violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, help, nodes }) => ({ id, help, nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 200) + " " + failureSummary) })))`,
  )) as object[];
  assert.deepEqual(found, [], where);
  const width = (await page.evaluate("document.documentElement.scrollWidth - innerWidth")) as number;
  assert.ok(width <= 0, `${where}: the page is ${width} pixels too wide`);
}

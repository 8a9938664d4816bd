/** Runs a page in headless Chromium: a bundle made by esbuild, which is handed JSON and hands JSON back. */
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { json } from "node:stream/consumers";
import { type BuildResult, buildSync } from "esbuild";
import { start } from "./child";
import { projectRoot } from "./paths";
import type { Handler } from "./range-server";

/** Starting takes seconds, more on a busy machine. */
const TIMEOUT_MS = 120_000;

/** What Chromium gets of the environment: no libraries that a test run loads first, such as those of sanitizers. */
export const browserEnvironment = { ...process.env, LD_PRELOAD: "" };

/** Where Chromium is; undefined if it is not installed. */
export const chromium = (process.env.PATH ?? "")
  .split(delimiter)
  .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name)))
  .find((path) => existsSync(path));

/** Why nothing can run in it here, or false: the value of `skip` of a test. */
export const noChromium = chromium === undefined && "chromium is not installed (apt-get install chromium)";

/** Nothing of the network but the page, and no sandbox, which root cannot have: the page is our own. */
const FLAGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"],
  ...["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

type Bundle = BuildResult<{ write: false; metafile: true }>;

/** Bundles `test/support/NAME.ts` for browsers, with the package as it is published. */
export function bundleForBrowser(name: string): Bundle {
  return bundleFile(join(projectRoot, "test", "support", `${name}.ts`), projectRoot);
}

/** Bundles a file of the project at `root`. */
export function bundleFile(path: string, root: string): Bundle {
  return buildSync({
    entryPoints: [path],
    absWorkingDir: root,
    tsconfigRaw: {}, // imports find what package.json exports, not the sources
    ...{ bundle: true, platform: "browser", format: "esm", target: "es2022", write: false, metafile: true },
  } as const);
}

/** The page asks for `/input`, and posts its result to `/result`; an error that nobody catches is posted to `/error`. */
const HTML = `<!doctype html><meta charset="utf-8"><title>test</title>
<script>
  const report = ({ reason, error, message }) =>
    fetch("/error", { method: "POST", body: JSON.stringify(String((reason ?? error)?.stack ?? message)) });
  addEventListener("error", report, true);
  addEventListener("unhandledrejection", report);
</script>
<script type="module" src="/page.js"></script>`;

/** The strictest policy that the kernels can be compiled under. */
export const CSP = "content-security-policy";
export const POLICY = {
  [CSP]: "default-src 'none'; connect-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'",
};

/** What a server sends so that a page is isolated: then it has shared memory. */
export const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

/**
 * Runs `script` in a page; resolves with what it posts. `otherwise` answers requests for other files. `headers` are those of the
 * page, besides {@link POLICY}.
 */
export async function runInChromium(
  script: Uint8Array,
  input: unknown,
  otherwise: Handler = (_request, response) => response.writeHead(404).end(),
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const answers: Record<string, [type: string, body: string | Uint8Array]> = {
    "/": ["text/html", HTML],
    "/page.js": ["text/javascript", script],
    "/input": ["application/json", JSON.stringify(input)],
  };
  let settle: (request: IncomingMessage) => void;
  const posted = new Promise<IncomingMessage>((resolve) => {
    settle = resolve;
  });
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? ""];
    if (request.method === "POST") settle(request);
    else if (answer === undefined) otherwise(request, response);
    else response.writeHead(200, { "content-type": answer[0], ...POLICY, ...headers }).end(answer[1]);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const profile = mkdtempSync(join(tmpdir(), "gguf-native-chromium-"));
  const args = [...FLAGS, `--user-data-dir=${profile}`, `http://127.0.0.1:${port}/`];
  const browser = start(chromium as string, args, {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    limit: 600_000,
    env: browserEnvironment,
  });
  const ended = once(browser, "close");
  let log = "";
  browser.stderr.on("data", (text) => {
    log += text;
  });
  const silence = (reason: string) => () => {
    throw new Error(`the page posted no result: ${reason}\n${log}`);
  };
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const request = await Promise.race([
      posted,
      ended.then(silence("Chromium ended")),
      once(timeout, "abort").then(silence(`${TIMEOUT_MS / 1000} seconds went by`)),
    ]);
    const body = await json(request);
    if (request.url !== "/result") throw new Error(`an error in the page: ${body}`);
    return body;
  } finally {
    try {
      process.kill(-(browser.pid as number), "SIGKILL"); // its helper processes too
    } catch {
      // it has ended
    }
    await ended;
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  }
}

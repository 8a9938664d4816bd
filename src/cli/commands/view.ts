/** `gguf-native view`: a page in the browser that shows models. */

import { spawn } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { checkUrl, sourceOfUrl } from "../../file/remote-file";
import { checkUnchanged } from "../../file/unchanged";
import type { Source } from "../../source/source";
import { isRemote } from "../../source/url";
import { decoded, type ServedModel, type StartSession, serveView } from "../../view-server/server";
import {
  MODEL_HELP,
  MODEL_OPTIONS,
  modelOptions,
  type OpenedModel,
  type OpenModelOptions,
  openModel,
  openPartially,
  shownPath,
} from "../arguments/open-model";
import { expectPositionals, parse, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native view FILE|URL [FILE|URL] [options]

Shows a model in the browser: what it holds, its metadata, its vocabulary, its
tensors and their values, the memory that it takes; two models side by side.
FILE is any file of a split model.

A server on this machine, 127.0.0.1, hands the page and these files to the
browser, and nothing to anybody else: the address cannot be guessed. It also
does the page's work on values, as fast as this machine can. Nothing leaves the
machine, and nothing can be changed. Of a URL, what one looks at is fetched; no
other address is. Ctrl-C ends it.

  --port N            the port of the server (default: any that is free)
  --no-open           only print the address, do not start a browser
${MODEL_HELP}
Examples:
  gguf-native view model.gguf
  gguf-native view model-F16.gguf model-Q4_K_M.gguf
  gguf-native view all-MiniLM-L6-v2/model.safetensors
  gguf-native view hf://ggml-org/models/tinyllamas/stories260K.gguf
  gguf-native view model.gguf --no-open --port 8080
`;

const OPTIONS = {
  port: { type: "string" },
  "no-open": { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

const VIEW = join(__dirname, "..", "..", "view");
const PAGE = join(VIEW, "index.html");
const SESSION = join(VIEW, "session.js");

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [first, second] = expectPositionals(positionals, "FILE|URL", "[FILE|URL]");
  const port = wholeNumber("--port", values.port, 1, 65535) ?? 0;
  const paths = second === undefined ? [first] : [first, second];
  const options = modelOptions(values, paths);
  const models = await Promise.all(paths.map((path) => servedModel(path, options)));
  const page = await readPage();
  const server = await serveView(page, models, port, startSession);
  terminal.print([server.url, terminal.quiet("Ctrl-C ends it.")]);
  if (!values["no-open"]) openBrowser(server.url);
  // Nothing is half written, so the signal that ends it is the system's.
  return new Promise(() => undefined);
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/**
 * What is served of a model: the files on this machine, or the model itself where it is elsewhere or not in GGUF. What is cut off
 * is shown as far as it goes. One that cannot be opened is said at once; the header is not read again for the first page.
 */
async function servedModel(path: string, options: OpenModelOptions): Promise<ServedModel> {
  const open = (partial: boolean): Promise<OpenedModel> => openModel(path, options, partial);
  const { model, cutOff } = await openPartially(open);
  const { file, local } = model;
  if (local !== undefined) {
    file.close();
    return [local.path, ...file.paths.filter((other) => other !== local.path)];
  }
  let first: OpenedModel["file"] | undefined = file;
  if (cutOff !== undefined) {
    file.close();
    first = undefined;
  }
  const shown = shownPath(path);
  const name = basename(isRemote(path) ? new URL(shown).pathname : resolve(shown));
  return {
    name: decoded(name) ?? name,
    sources: file.format === "gguf" ? sourcesOf(path, file.paths, options) : new Map(),
    async open(partial) {
      const model = first ?? (await open(partial)).file;
      first = undefined;
      return { model, check: () => checkUnchanged(model) };
    },
  };
}

/** The files of a model on a server by their names: their URLs are that of the one that was named, but for the path. */
function sourcesOf(url: string, paths: readonly string[], { headers }: OpenModelOptions): Map<string, Source> {
  return new Map(
    paths.map((path) => {
      const { pathname } = new URL(path);
      const place = Object.assign(new URL(checkUrl(url)), { pathname });
      const name = basename(pathname);
      return [decoded(name) ?? name, sourceOfUrl(place.href, undefined, new Headers(headers))];
    }),
  );
}

/** Loaded when it is needed: `npm run build -- view` makes it with the page. */
const startSession: StartSession = (find) => (require(SESSION) as { startSession: StartSession }).startSession(find);

async function readPage(): Promise<string> {
  return access(SESSION)
    .then(() => readFile(PAGE, "utf8"))
    .catch((cause) => {
      throw new Error(`the page is not there: in the sources of gguf-native, 'npm run build -- view' makes ${PAGE}`, {
        cause,
      });
    });
}

/** Where no browser can be started, the address on the terminal is enough. */
function openBrowser(url: string): void {
  const [program, ...args] =
    process.platform === "darwin"
      ? (["open"] as const)
      : process.platform === "win32"
        ? (["rundll32", "url.dll,FileProtocolHandler"] as const) // as `start`, which only a shell knows
        : (["xdg-open"] as const);
  const browser = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  browser.on("error", () => undefined);
  browser.unref();
}

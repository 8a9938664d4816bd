/** `gguf-native view`: a page in the browser that shows models. */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { openSync } from "../../file/open";
import { expectPositionals, parse, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { SIGNALS } from "../output/write-files";
import { serveView } from "../work/view-server";

const HELP = `Usage: gguf-native view FILE [FILE] [options]

Shows a model in the browser: what it holds, its metadata, its vocabulary, its
tensors and their values, the memory that it takes; two models side by side.
FILE is any file of a split model.

A server on this machine, 127.0.0.1, hands the page and these files to the
browser, and nothing to anybody else: the address cannot be guessed. Nothing
leaves the machine, and nothing can be changed. Ctrl-C ends it.

  --port N            the port of the server (default: any that is free)
  --no-open           only print the address, do not start a browser

Examples:
  gguf-native view model.gguf
  gguf-native view model-F16.gguf model-Q4_K_M.gguf
  gguf-native view model.gguf --no-open --port 8080
`;

const OPTIONS = {
  port: { type: "string" },
  "no-open": { type: "boolean" },
} as const;

const PAGE = join(__dirname, "..", "..", "view", "index.html");

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [first, second] = expectPositionals(positionals, "FILE", "[FILE]");
  const port = wholeNumber("--port", values.port, 1, 65535) ?? 0;
  const models = (second === undefined ? [first] : [first, second]).map(filesOf);
  const server = await serveView(await readPage(), models, port);
  try {
    const interrupted = interruption();
    terminal.print([server.url, terminal.quiet("Ctrl-C ends it.")]);
    if (!values["no-open"]) openBrowser(server.url);
    await interrupted;
  } finally {
    await server.close();
  }
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** The files of a model, the named one first. What is cut off is shown as far as it goes. */
function filesOf(path: string): [string, ...string[]] {
  const model = openSync(path, { partial: true });
  model.close();
  return [path, ...model.paths.filter((other) => other !== path)];
}

async function readPage(): Promise<string> {
  return readFile(PAGE, "utf8").catch((cause) => {
    throw new Error(
      `the page is not there: in the sources of gguf-native, 'npm run build:view' makes ${PAGE}`,
      { cause },
    );
  });
}

/** Resolves when the user or the system ends the command. A second signal ends the process at once. */
function interruption(): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      for (const signal of SIGNALS) process.off(signal, end);
      resolve();
    };
    for (const signal of SIGNALS) process.on(signal, end);
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

/** `gguf-native view`: the command. cli/view-server.test.ts tests its server, view/browser.test.ts what the page does. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { basename, delimiter, join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openRemote, splitModel } from "gguf-native";
import { type Child, runNode, start } from "../support/child";
import { at, expectFailure, floats, folder, writeModel } from "../support/cli";
import { installPackage, plainEnv } from "../support/installed";
import { answerRange, freePort, serve } from "../support/range-server";
import { safetensorsOf } from "../support/safetensors-files";
import { descriptorsOf } from "../support/view-site";

const PAGE = "<!doctype html><title>the page</title><script>1</script>";

/** The package with a page of the test's own. */
const { bin, folder: installed } = installPackage("compiled");
const page = join(installed, "dist", "view", "index.html");
mkdirSync(join(installed, "dist", "view"), { recursive: true });
writeFileSync(page, PAGE);
writeFileSync(
  join(installed, "dist", "view", "session.js"),
  "exports.startSession = () => ({ ask: () => undefined, close: () => undefined });",
);

writeModel("small.gguf", { tensors: [floats("t", [1, 2, 3, 4])] });
writeModel("other name.gguf", { tensors: [floats("u", [5, 6]), floats("v", [7])] });
writeFileSync(at("not.gguf"), "hello\nworld");

interface Running {
  child: Child;
  url: string;
  printed: () => string;
  complained: () => string;
}

/** Runs the command until it has printed its address. */
async function view(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Running> {
  const child = start(process.execPath, [bin, "view", ...args], {
    cwd: folder,
    env: { ...plainEnv, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    limit: 600_000,
  });
  after(() => child.kill("SIGKILL"));
  let [printed, complained] = ["", ""];
  child.stderr.on("data", (text) => {
    complained += text;
  });
  child.stdout.on("data", (text) => {
    printed += text;
  });
  const ended = once(child, "close").then(() => assert.fail(`it ended: ${complained}`));
  while (!printed.includes("\n")) await Promise.race([once(child.stdout, "data"), ended]);
  ended.catch(() => undefined);
  const [url] = printed.split("\n") as [string];
  return { child, url, printed: () => printed, complained: () => complained };
}

const outcome = async ({ child }: Running) => {
  if (child.exitCode === null && child.signalCode === null) await once(child, "close");
  return [child.exitCode, child.signalCode];
};

test("prints the address of the page, which opens the model", async () => {
  const running = await view(["small.gguf", "--no-open"]);
  const { url } = running;
  assert.equal(await (await fetch(url)).text(), PAGE);
  const remote = await openRemote(new URL(new URL(url).searchParams.get("url")!, url));
  assert.deepEqual(await remote.tensor("t").dequantize(), Float32Array.of(1, 2, 3, 4));
  assert.equal(running.printed(), `${url}\nCtrl-C ends it.\n`);
  assert.equal(running.complained(), "");
});
test("a model of safetensors, a file or its folder, for which the page asks", async () => {
  mkdirSync(at("checkpoint"));
  const tensors = { t: { dtype: "F32", shape: [1], bytes: new Uint8Array(4) } };
  writeFileSync(join(at("checkpoint"), "model.safetensors"), safetensorsOf(tensors));
  for (const [path, place] of [
    ["checkpoint/model.safetensors", "remote/0/model.safetensors"],
    ["checkpoint", "remote/0/checkpoint"],
    ["./checkpoint/", "remote/0/checkpoint"],
  ] as const) {
    const { url, child } = await view([path, "--no-open"]);
    assert.equal(new URL(url).searchParams.get("url"), place);
    child.kill("SIGKILL");
  }
  writeFileSync(at("bad.safetensors"), Buffer.alloc(20, 255));
  await expectFailure("view bad.safetensors", 1, /header/);
});
test("two models, of which each may be split", async () => {
  const [, second] = await splitModel(at("other name.gguf"), at("parts"), { maxTensors: 1 });
  const { url } = await view(["--no-open", "small.gguf", second!]);
  const urls = new URL(url).searchParams.getAll("url").map((place) => new URL(place, url));
  const models = await Promise.all(urls.map((place) => openRemote(place)));
  const found = models.map(({ tensors }) => [...tensors.keys()]);
  assert.deepEqual(found, [["t"], ["u", "v"]]);
  assert.deepEqual(await models[1]!.tensor("u").dequantize(), Float32Array.of(5, 6));
  const { url: same } = await view(["--no-open", "small.gguf", "small.gguf"]);
  assert.deepEqual(new URL(same).searchParams.getAll("url"), ["model/0/small.gguf", "model/1/small.gguf"]);
});
test("a file that is cut off is shown as far as it goes", async () => {
  writeFileSync(at("cut.gguf"), readFileSync(at("small.gguf")).subarray(0, -4));
  const { url } = await view(["--no-open", "cut.gguf"]);
  const place = new URL(new URL(url).searchParams.get("url")!, url);
  await assert.rejects(openRemote(place), { code: "ERR_GGUF_TRUNCATED" });
  assert.deepEqual([...(await openRemote(place, { partial: true })).tensors.keys()], ["t"]);
});
test("a split model on another server, by a signed URL of any of its files", async () => {
  const [, second] = await splitModel(at("other name.gguf"), at("far parts"), { maxTensors: 1 });
  const { url: far } = await serve((request, response) => {
    const { pathname, search } = new URL(request.url!, "http://x");
    const path = at(decodeURIComponent(basename(pathname)));
    if (search !== "?signature=secret" || !existsSync(path)) return void response.writeHead(403).end();
    answerRange(request, response, readFileSync(path));
  });
  const { url } = await view(["--no-open", `${new URL(encodeURIComponent(basename(second!)), far)}?signature=secret`]);
  const place = new URL(url).searchParams.get("url")!;
  assert.doesNotMatch(place, /secret/);
  // As the page opens it that compares it with a file of its own.
  const model = await openRemote(new URL(place, url));
  assert.deepEqual([...model.tensors.keys()], ["u", "v"]);
  assert.deepEqual(await model.tensor("u").dequantize(), Float32Array.of(5, 6));
});
test("--port", async () => {
  const port = await freePort();
  const { url } = await view(["--no-open", "--port", String(port), "small.gguf"]);
  assert.equal(new URL(url).port, String(port));
  const args = [bin, "view", "--no-open", "--port", String(port), "small.gguf"];
  const second = runNode(args, { cwd: folder, env: plainEnv });
  assert.equal(second.status, 1);
  assert.equal(
    second.stderr,
    `gguf-native: port ${port} cannot be used: another program uses it; take another --port, or none\n`,
  );
});

describe("the browser", { skip: process.platform === "win32" && "its programs are no scripts" }, () => {
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const programs = join(folder, "programs");
  mkdirSync(programs);
  const log = join(folder, "opened.txt");
  writeFileSync(join(programs, program), `#!/bin/sh\nfor word; do echo "$word" >>'${log}'; done\n`);
  chmodSync(join(programs, program), 0o755);
  const env = { PATH: `${programs}${delimiter}${process.env.PATH}` };

  test("is started with the address, by no shell", async () => {
    writeModel("$(touch pwned);'.gguf", { tensors: [floats("t", [1])] });
    const { url } = await view(["$(touch pwned);'.gguf"], env);
    while (!existsSync(log) || !readFileSync(log, "utf8").endsWith("\n")) await delay(10);
    assert.equal(readFileSync(log, "utf8"), `${url}\n`);
    assert.ok(!existsSync(at("pwned")));
    rmSync(log);
  });
  test("is not started with --no-open", async () => {
    const running = await view(["--no-open", "small.gguf"], env);
    assert.equal((await fetch(running.url)).status, 200);
    running.child.kill("SIGINT");
    assert.deepEqual(await outcome(running), [null, "SIGINT"]);
    assert.ok(!existsSync(log));
  });
  test("where there is none, the address is enough", async () => {
    const running = await view(["small.gguf"], { PATH: join(folder, "nothing") });
    assert.equal((await fetch(running.url)).status, 200);
    await delay(50);
    assert.equal(running.complained(), "");
    running.child.kill("SIGINT");
    assert.deepEqual(await outcome(running), [null, "SIGINT"]);
  });
});

describe("it ends", { skip: process.platform === "win32" && "no signals" }, () => {
  writeFileSync(at("long.gguf"), readFileSync(at("small.gguf")));
  truncateSync(at("long.gguf"), 64 << 20);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    test(`with ${signal} by the system, whatever is under way`, async () => {
      const running = await view(["--no-open", "long.gguf"]);
      const { hostname, port } = new URL(running.url);
      const silent = connect(Number(port), hostname).on("error", () => undefined);
      await once(silent, "connect");
      // An answer that nobody reads would never end.
      const stuck = request(new URL("model/0/long.gguf", running.url), { agent: false }).end();
      const [response] = (await once(stuck, "response")) as [IncomingMessage];
      response.on("error", () => undefined).pause();
      assert.ok([1, undefined].includes(descriptorsOf(at("long.gguf"), running.child.pid)));
      running.child.kill(signal);
      assert.deepEqual(await outcome(running), [null, signal]);
      assert.equal(running.complained(), "");
      for (const connection of [silent, stuck]) connection.destroy();
    });
  }
});

test("what is wrong is said before there is a server", async () => {
  await expectFailure("view none.gguf", 1, /none\.gguf: cannot open the file: ./);
  await expectFailure("view not.gguf", 1, /not\.gguf: not a GGUF file/);
  await expectFailure("view small.gguf not.gguf", 1, /not\.gguf: not a GGUF file/);
  await expectFailure("view .", 1, /directory/);
  await expectFailure(["view", "odd\x1b[31m\nname"], 1, /odd\\x1b\[31m\\nname/);
  await expectFailure("view a b c", 2, /unexpected argument 'c'/);
  await expectFailure("view hf://owner", 2, /hf:/);
  await expectFailure("view http://127.0.0.1:1/model.gguf", 1, /127\.0\.0\.1:1\/model\.gguf: the request failed/);
  for (const port of ["0", "65536", "-1", "80.5", "x", ""]) {
    await expectFailure(["view", `--port=${port}`, "small.gguf"], 2, /--port must be a whole number from 1 to 65535/);
  }
  await expectFailure("view --port", 2, /--port/);
  await expectFailure("view --open small.gguf", 2, /Did you mean '--no-open'\?|Unknown option/);
});
test("where the page is missing, an error says how it is made", async () => {
  rmSync(page);
  const { status, stderr } = runNode([bin, "view", "--no-open", "small.gguf"], {
    cwd: folder,
    env: plainEnv,
  });
  assert.equal(status, 1);
  const expected = /^gguf-native: the page is not there: .*'npm run build -- view' makes \S+index\.html\n$/;
  assert.match(stderr, expected);
});

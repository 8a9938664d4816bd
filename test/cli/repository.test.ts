/** `gguf-native inspect hf://OWNER/NAME`, against a server that stands for the hub. */
import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { expectFailure, expectTidy, json, output } from "../support/cli";
import { type Handler, serve } from "../support/range-server";

afterEach(() => {
  for (const name of ["HF_ENDPOINT", "HF_TOKEN"]) delete process.env[name];
});

/** A hub that answers so; the command line asks it. */
async function hub(handler: Handler) {
  const server = await serve(handler);
  process.env.HF_ENDPOINT = new URL(server.url).origin;
  return server;
}
const file = (path: string, size: number) => ({ type: "file", oid: "1", size, path });
const answering =
  (entries: unknown, headers = {}): Handler =>
  (_, response) => {
    response.writeHead(200, { "content-type": "application/json", ...headers });
    response.end(typeof entries === "string" ? entries : JSON.stringify(entries));
  };
const FILES = [
  { type: "directory", oid: "1", size: 0, path: "big" },
  file("README.md", 1234),
  file("model-Q4_K_M.gguf", 5 * 2 ** 20),
  file("model.f16.gguf", 2 ** 31),
  file("big/model-F16-00001-of-00002.gguf", 2 ** 30),
  file("big/model-F16-00002-of-00002.gguf", 2 ** 29),
];

describe("a repository", () => {
  test("is a table of its GGUF files, a split model in one line", async () => {
    const { requests } = await hub(answering(FILES));
    const stdout = await output("inspect hf://some/repo");
    expectTidy(stdout);
    assert.deepEqual(
      stdout.split("\n").map((line) => line.trim().split(/ {2,}/)),
      [
        ["hf://some/repo"],
        ["file", "type", "files", "size"],
        ["big/model-F16-00001-of-00002.gguf", "F16", "2", "1.50 GiB"],
        ["model-Q4_K_M.gguf", "Q4_K_M", "1", "5.00 MiB"],
        ["model.f16.gguf", "F16", "1", "2.00 GiB"],
        [""],
        ["gguf-native inspect hf://some/repo/FILE", "# what one of them holds"],
        [""],
      ],
    );
    const urls = requests.map(({ url }) => url);
    assert.deepEqual(urls, ["/api/models/some/repo/tree/main?recursive=true"]);
  });
  test("of a revision, in JSON, with the token", async () => {
    process.env.HF_TOKEN = "hf_secret";
    const { requests } = await hub(answering(FILES));
    const { path, models } = await json("inspect hf://some/repo@v1/");
    assert.equal(path, "hf://some/repo@v1");
    assert.deepEqual(models[1], {
      ...{ path: "model-Q4_K_M.gguf", type: "Q4_K_M", files: 1, size: 5 * 2 ** 20 },
      url: "hf://some/repo@v1/model-Q4_K_M.gguf",
    });
    assert.equal(requests[0]?.url, "/api/models/some/repo/tree/v1?recursive=true");
    assert.equal(requests[0]?.headers.authorization, "Bearer hf_secret");
  });
  test("in pages, which go on at the same server only", async () => {
    const { requests } = await hub((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
      const page = Number(searchParams.get("cursor") ?? 0);
      const link = page < 2 ? { link: `<${pathname}?recursive=true&cursor=${page + 1}>; rel="next"` } : {};
      answering([file(`m${page}.gguf`, page)], link)(request, response);
    });
    const { models } = await json("inspect hf://some/repo");
    const found = models.map(({ path }: { path: string }) => path);
    assert.deepEqual(found, ["m0.gguf", "m1.gguf", "m2.gguf"]);
    assert.equal(requests.length, 3);
    const other = await serve(answering(FILES));
    await hub(answering(FILES, { link: `<${other.url}>; rel="next"` }));
    await expectFailure("inspect hf://some/repo", 1, /the list goes on at another server/);
    assert.equal(other.requests.length, 0);
    await hub((request, response) => answering([], { link: `<${request.url}>; rel="next"` })(request, response));
    await expectFailure("inspect hf://some/repo", 1, /more than 200 pages/);
  });
  test("is asked again where a request, its answer or its connection fails", async () => {
    const failing: Handler[] = [
      ({ socket }) => socket.destroy(),
      (_, response) => void response.writeHead(503, { "retry-after": "0" }).end(),
      (_, response) => {
        response.writeHead(200, { "content-length": 1000 });
        response.write("[", () => response.destroy());
      },
    ];
    const left = [...failing];
    const { requests } = await hub((...exchange) => (left.shift() ?? answering(FILES))(...exchange));
    assert.equal((await json("inspect hf://some/repo")).models.length, 3);
    assert.equal(requests.length, failing.length + 1);
    const dead = await hub(({ socket }) => socket.destroy());
    await expectFailure("inspect hf://some/repo", 1, /the request failed: .*, 5 times in a row/);
    assert.equal(dead.requests.length, 5);
  });
  test("names that control a terminal are escaped", async () => {
    await hub(answering([file("evil\u001b[31m\n.gguf", 1)]));
    expectTidy(await output("inspect hf://some/repo"));
  });
  test("answers that are wrong are errors", async () => {
    for (const [handler, message] of [
      [answering("<html>"), /the answer is no JSON/],
      [answering({ error: "x" }), /no list of files/],
      [answering([{ path: 1, size: 1 }]), /without a path and a size/],
      [answering([file("a.gguf", -1)]), /without a path and a size/],
      [answering([null]), /without a path and a size/],
      [answering(`[${" ".repeat(17 << 20)}]`), /longer than 16777216 bytes/],
      [(_, response) => void response.writeHead(404).end(), /answered 404/],
      [(_, response) => void response.writeHead(401).end(), /answered 401.*HF_TOKEN/],
    ] as [Handler, RegExp][]) {
      await hub(handler);
      await expectFailure("inspect hf://some/repo", 1, message);
    }
    await expectFailure("inspect hf://some/...", 1, /./);
  });
});

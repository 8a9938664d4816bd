/** Questions that the server of `gguf-native view` answers: to whom, which ones, and at what cost. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openRemote, openSafetensors, openSync, parse, splitModel } from "gguf-native";
import { checkUnchanged } from "#dist/file/unchanged";
import { HttpSource } from "#dist/source/http";
import { type Calls, FIRST_SERVED, modelsIn, withModels } from "../../view/lib/protocol";
import { encodeMessage, MessageReader } from "../../view/lib/wire";
import { startSession } from "../../view/server";
import { patch, replace } from "../support/changes";
import { temporaryFolder, writeIn } from "../support/paths";
import { answerRange, serve as serveRanges } from "../support/range-server";
import { safetensorsOf } from "../support/safetensors-files";
import { sampleModel } from "../support/sample-model";
import { writeSparseGguf } from "../support/sparse-file";
import { type Answer, ask as askPath, askRaw, type Site, type SiteModel, serveSite } from "../support/view-site";

const PAGE = '<!doctype html><meta name="gguf-native-view" content="alone"><title>page</title>';

const folder = temporaryFolder();
const content = Buffer.from(sampleModel());

const write = (name: string, bytes: Uint8Array = content) => writeIn(folder, name, bytes);

const modelPath = write("model.gguf");
const serve = (...models: SiteModel[]) => serveSite(PAGE, models, 0, startSession);
const place = "model/0/model.gguf";

/** Messages of an answer. */
function messagesOf(body: Uint8Array): Record<string, unknown>[] {
  return [...new MessageReader().add(body)] as Record<string, unknown>[];
}

function post(site: Site, body: string | Uint8Array, headers: Record<string, string> = {}): ClientRequest {
  const sent = request({
    ...{ host: "127.0.0.1", port: site.port, path: `${site.base}ask`, method: "POST", agent: false },
    headers: { "content-length": String(Buffer.byteLength(body)), ...headers },
  });
  sent.on("error", () => undefined).end(body);
  return sent;
}

async function postText(site: Site, body: string | Uint8Array, headers?: Record<string, string>): Promise<Answer> {
  const [response] = (await once(post(site, body, headers), "response")) as [IncomingMessage];
  return { status: response.statusCode as number, headers: response.headers, body: await buffer(response) };
}

/** The answer to a question; rejects with its error. */
async function ask<N extends keyof Calls>(
  site: Site,
  call: N,
  argument: Parameters<Calls[N]>[0],
): Promise<ReturnType<Calls[N]>> {
  const answer = await postText(site, JSON.stringify({ call, argument }));
  assert.equal(answer.status, 200, answer.body.toString());
  const last = messagesOf(answer.body).at(-1) as { result?: unknown; error?: string };
  if (last.error !== undefined) throw new Error(last.error);
  return last.result as ReturnType<Calls[N]>;
}

async function expectRefusal(status: number, asked: Promise<Answer>): Promise<Answer> {
  const answer = await asked;
  assert.equal(answer.status, status, answer.body.toString());
  assert.match(answer.body.toString(), /^[ -~]{5,100}\n$/);
  assert.equal(answer.headers["cross-origin-resource-policy"], "same-origin");
  return answer;
}

/** A model with a tensor of so many values, which the disk has in part. */
function writeLarge(name: string, rows: number): string {
  const path = join(folder, name);
  const byteLength = 4 * 4096 * rows;
  const failure = writeSparseGguf(path, [{ name: "large", type: 0, shape: [4096, rows], byteLength }]);
  assert.equal(failure, false);
  return path;
}

describe("messages as bytes", () => {
  const message = {
    id: 3,
    result: {
      floats: Float32Array.of(1, -0, Number.NaN),
      more: [Float64Array.of(1e300), Uint32Array.of(4_294_967_295), new Uint8Array(0)],
      map: new Map<string, unknown>([
        ["a", Number.NaN],
        ["b", { c: -0 }],
      ]),
      holes: [undefined, 1, undefined],
      numbers: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 0.1],
      text: "漢\u202e\0",
      nothing: null,
    },
  };
  test("come back as they were, wherever they are cut", () => {
    const bytes = Buffer.concat([encodeMessage(message), encodeMessage(null), encodeMessage({ done: 1 })]);
    for (const size of [1, 7, 100, bytes.length]) {
      const reader = new MessageReader();
      const read: unknown[] = [];
      for (let at = 0; at < bytes.length; at += size) read.push(...reader.add(bytes.subarray(at, at + size)));
      assert.deepEqual(read, [message, null, { done: 1 }]);
    }
  });
});

describe("numbers of models", () => {
  test("are found and changed in every question", () => {
    const next = (model: number) => model + 1;
    for (const [argument, changed, models] of [
      [3, 4, [3]],
      [{ model: 3, tensor: 3 }, { model: 4, tensor: 3 }, [3]],
      [{ a: 1, b: 2 }, { a: 2, b: 3 }, [1, 2]],
      [[{ model: 1, tensor: 0 }], [{ model: 2, tensor: 0 }], [1]],
      [
        { a: { model: 1, tensor: 0 }, b: { model: 2, tensor: 0 }, width: 9 },
        { a: { model: 2, tensor: 0 }, b: { model: 3, tensor: 0 }, width: 9 },
        [1, 2],
      ],
    ] as const) {
      assert.deepEqual(withModels<unknown>(argument, next), changed);
      assert.deepEqual(modelsIn(argument), models);
    }
  });
});

describe("who may ask", async () => {
  const site = await serve([modelPath]);
  const own = `127.0.0.1:${site.port}`;
  const question = JSON.stringify({ call: "open", argument: { url: place } });

  test("the page alone, as for what there is to read", async () => {
    await expectRefusal(421, postText(site, question, { host: "example.com" }));
    await expectRefusal(403, postText(site, question, { origin: "http://example.com" }));
    const headers = { origin: `http://${own}`, "sec-fetch-site": "same-origin" };
    assert.equal((await postText(site, question, headers)).status, 200);
  });
  test("only with the token, and only where a session answers", async () => {
    const token = site.base.slice(1, -1);
    for (const base of ["/", "//", `/${token.slice(1)}/`, `/${token.toLowerCase()}x/`]) {
      await expectRefusal(404, postText({ ...site, base }, question));
    }
    await expectRefusal(405, postText({ ...site, base: "/?" }, question)); // the way to the page
    const silent = await serveSite(PAGE, [[modelPath]]);
    await expectRefusal(405, postText(silent, question));
    assert.equal((await askPath(silent, silent.base)).body.toString(), PAGE);
    const served = (await askPath(site, site.base)).body.toString();
    assert.equal(served, PAGE.replace("alone", "served"));
  });
  test("questions are posted, and nothing else is", async () => {
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await askPath(site, `${site.base}ask`, {}, method);
      assert.deepEqual([status, headers.allow], [405, "POST"]);
    }
    for (const path of [site.base, site.base + place]) {
      const { status, headers } = await askPath(site, path, {}, "POST");
      assert.deepEqual([status, headers.allow], [405, "GET, HEAD"]);
    }
  });
});

describe("what may be asked", async () => {
  const site = await serve([modelPath]);
  const { id } = await ask(site, "open", { url: place });

  test("about the models of the command, by their numbers", async () => {
    assert.ok(id >= FIRST_SERVED);
    for (const url of [
      ...["", "model/1/model.gguf", "model/0/../0/model.gguf", modelPath, `file://${modelPath}`, "/etc/passwd"],
      ...["http://127.0.0.1:1/x.gguf", "hf://a/b/c.gguf", "__proto__", "%", "%2e%2e/model.gguf"],
      "x".repeat(4096),
    ]) {
      await assert.rejects(ask(site, "open", { url }), { message: "the server has no such model" }, url);
    }
    for (const model of [0, 1, FIRST_SERVED - 1, FIRST_SERVED + 1000]) {
      await assert.rejects(ask(site, "vocabulary", model), /the model was closed/);
    }
    await assert.rejects(ask(site, "stats", { model: id, tensor: 20, bins: 8 }), {
      message: "there is no tensor 20",
    });
    const key = { model: id, key: 1e9, first: 0, count: 1 };
    await assert.rejects(ask(site, "value", key), { message: "there is no key 1000000000" });
    const beyond = { model: id, tensor: 0, row: 2 ** 40, column: 2 ** 40, rows: 8, columns: 8 };
    assert.deepEqual((await ask(site, "values", beyond)).values, []);
  });
  test("nothing but what a question is", async () => {
    const tensor = { model: id, tensor: 0 };
    const picture = { ...tensor, width: 8, height: 8 };
    for (const value of [
      ...[null, 1, "open", [], {}, { call: "open" }, { argument: 1 }, { call: 1, argument: id }],
      ...["constructor", "__proto__", "toString", "", "Open", "cancel"].map((call) => ({
        call,
        argument: id,
      })),
      { call: "close", argument: id, cancel: true },
      { call: "close", argument: id, id: 1 },
      ...[null, "1", -1, 1.5, 2 ** 53, [id], { model: id }].map((argument) => ({
        call: "vocabulary",
        argument,
      })),
      ...[{}, { url: 1 }, { url: "x".repeat(4097) }, { url: place, files: [] }, { files: [] }].map((argument) => ({
        call: "open",
        argument,
      })),
      ...[0, -1, 513, 1e9, "8", null].map((width) => ({ call: "picture", argument: { ...picture, width } })),
      ...[-1, 0.5, 4097, 2 ** 40].map((bins) => ({ call: "stats", argument: { ...tensor, bins } })),
      { call: "values", argument: { ...tensor, row: 0, column: 0, rows: 1025, columns: 1 } },
      { call: "values", argument: { ...tensor, row: 0, column: 0, rows: 1 } },
      { call: "scales", argument: { ...tensor, first: 0, count: 1e6 } },
      { call: "value", argument: { model: id, key: 0, first: 0, count: 1e9 } },
      { call: "compare", argument: { a: tensor } },
      ...[{}, [{}], [{ a: tensor }], Array(65).fill(tensor)].map((argument) => ({ call: "measure", argument })),
      { call: "compare", argument: { a: tensor, b: { ...tensor, __proto: 1 } } },
      { call: "difference", argument: { a: tensor, b: tensor, width: 1e6, height: 1e6 } },
    ]) {
      const answer = await postText(site, JSON.stringify(value));
      const said = [answer.status, answer.body.toString()];
      assert.deepEqual(said, [400, "this is no question\n"], JSON.stringify(value));
    }
    const infinite = '{"call":"close","argument":1e400}';
    for (const text of ["", "{", "\0", "[".repeat(100_000), infinite, "undefined", Buffer.from([255, 254])]) {
      await expectRefusal(400, postText(site, text));
    }
    // JSON may have a key twice, or one that is special in JavaScript.
    for (const text of [
      `{"call":"vocabulary","call":"nothing","argument":${id}}`,
      `{"call":"vocabulary","argument":${id},"__proto__":1}`,
      `{"call":"picture","argument":{"__proto__":{"width":8,"height":8},"model":${id},"tensor":0}}`,
    ]) {
      await expectRefusal(400, postText(site, text));
    }
  });
  test("in a megabyte", async () => {
    const sent = connect(site.port, "127.0.0.1").on("error", () => undefined);
    const length = 64 << 20;
    sent.write(`POST ${site.base}ask HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\nContent-Length: ${length}\r\n\r\n`);
    const piece = Buffer.alloc(1 << 20, " ");
    for (let i = 0; i < 3; i++) sent.write(piece);
    const [answer] = (await once(sent, "data")) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1\.1 413 /);
    sent.destroy();
    const chunked = `POST ${site.base}ask HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n`;
    assert.match(await askRaw(site, chunked), /^HTTP\/1\.1 400 /);
  });
});

describe("answers", () => {
  test("are those of the library", async () => {
    const site = await serve([modelPath]);
    const model = await ask(site, "open", { url: place });
    assert.equal(model.name, "model.gguf");
    const name = "blk.0.attn_k.weight";
    const tensor = model.tensors.names.indexOf(name);
    const expected = parse(content).tensor(name);
    const stats = await ask(site, "stats", { model: model.id, tensor, bins: 16 });
    assert.deepEqual(stats, expected.statsSync({ bins: 16 }));
    const values = await ask(site, "values", {
      ...{ model: model.id, tensor },
      ...{ row: 1, column: 0, rows: 1, columns: 8 },
    });
    const [columns = 0] = expected.shape;
    assert.deepEqual(values.values, [expected.dequantizeSync().slice(columns, columns + 8)]);
    assert.equal((await ask(site, "vocabulary", model.id)).scores[3], -3);
    const memory = await ask(site, "memory", { model: model.id, context: undefined });
    assert.ok(memory.weights.types instanceof Map);
  });
  test("say how far they are", async () => {
    const site = await serve([writeLarge("progress.gguf", 1024)]);
    const { id } = await ask(site, "open", { url: "model/0/progress.gguf" });
    const argument = { model: id, tensor: 0, width: 4, height: 4 };
    const { body } = await postText(site, JSON.stringify({ call: "picture", argument }));
    const messages = messagesOf(body);
    assert.ok(messages.length > 1 && messages.slice(0, -1).every(({ total }) => total === 4096 * 1024));
  });
  test("of a split model, and of two models", async () => {
    const paths = await splitModel(modelPath, join(folder, "parts"), { maxTensors: 8 });
    const site = await serve([paths[1]!, ...paths.filter((_, i) => i !== 1)], [modelPath]);
    const urls = new URL(site.url).searchParams.getAll("url");
    const [a, b] = await Promise.all(urls.map((url) => ask(site, "open", { url })));
    assert.deepEqual(a!.tensors.names, b!.tensors.names);
    assert.deepEqual(await ask(site, "differentKeys", { a: a!.id, b: b!.id }), []);
    const address = { a: { model: a!.id, tensor: 3 }, b: { model: b!.id, tensor: 3 } };
    assert.equal((await ask(site, "compare", address)).sameBytes, true);
  });
  test("of models whose names need escapes", async () => {
    const path = write("é #%41&=+ 漢.gguf");
    const site = await serve([path]);
    const url = new URL(new URL(site.url).searchParams.get("url")!, site.url).href.slice(
      new URL(site.base, site.url).href.length,
    );
    assert.equal((await ask(site, "open", { url })).name, "é #%41&=+ 漢.gguf");
  });
  test("of a model on a server come from there alone, by requests for that one", async () => {
    const { url, requests } = await serveRanges((request, response) => answerRange(request, response, content));
    const open = async (partial: boolean) => ({ model: await openRemote(url, { partial }), check: async () => {} });
    const source = new HttpSource(new URL(url), fetch, new Headers());
    const sources = new Map([
      ["far.gguf", source],
      ["part.gguf", source],
    ]);
    const site = await serve({ name: "far.gguf", open, sources }, { name: "far.gguf", open });
    assert.match(site.url, /\?url=remote\/0\/far\.gguf&url=remote\/1\/far\.gguf$/);
    const model = await ask(site, "open", { url: "remote/0/far.gguf" });
    assert.equal(model.name, "far.gguf");
    const stats = await ask(site, "stats", { model: model.id, tensor: 0, bins: 4 });
    const [first] = parse(content).tensors.values();
    assert.deepEqual(stats, first!.statsSync({ bins: 4 }));
    assert.deepEqual([...new Set(requests.map((request) => request.url))], [new URL(url).pathname]);
    // The bytes of its files are handed on to the page.
    for (const name of sources.keys()) {
      const { status, body } = await askPath(site, `${site.base}remote/0/${name}`, { range: "bytes=9-99" });
      assert.deepEqual([status, body.equals(content.subarray(9, 100))], [206, true]);
    }
    await expectRefusal(404, askPath(site, `${site.base}remote/1/far.gguf`));
  });
});

test("a model of safetensors is asked for, and looked at for changes", async () => {
  const path = write(
    "model.safetensors",
    safetensorsOf({
      t: { dtype: "F32", shape: [2, 2], bytes: new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer) },
    }),
  );
  const open = async () => {
    const model = await openSafetensors(path);
    return { model, check: () => checkUnchanged(model) };
  };
  const site = await serve({ name: "model.safetensors", open });
  const { id, tensors } = await ask(site, "open", { url: "remote/0/model.safetensors" });
  assert.deepEqual(tensors.names, ["t"]);
  const { mean } = await ask(site, "stats", { model: id, tensor: 0, bins: 4 });
  assert.equal(mean, 2.5);
  writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from("more")]));
  await assert.rejects(ask(site, "stats", { model: id, tensor: 0, bins: 4 }), /changed/);
});

describe("a file that changes", () => {
  const change = (path: string) => patch(path, Buffer.alloc(1000), 1_000_000);
  const windows = process.platform === "win32" && "Windows refuses it for files that are open";
  for (const [what, makeChange, message] of [
    ["in place", change, /the file has changed: reload the page/],
    ["replaced", (path: string) => replace(path, content), /another file is in its place/],
    ["removed", (path: string) => rmSync(path), /another file is in its place/],
  ] as const) {
    test(`${what} gives an error, and no numbers`, { skip: windows }, async () => {
      const name = `${what}.gguf`;
      const path = write(name);
      const site = await serve([path]);
      const url = `model/0/${encodeURIComponent(name)}`;
      const { id } = await ask(site, "open", { url });
      await ask(site, "stats", { model: id, tensor: 0, bins: 4 });
      makeChange(path);
      await assert.rejects(ask(site, "stats", { model: id, tensor: 0, bins: 4 }), message);
      await assert.rejects(ask(site, "vocabulary", id), message);
      if (what !== "in place") return assert.rejects(ask(site, "open", { url }), message);
      const again = await ask(site, "open", { url });
      const [first] = openSync(path).tensors.values();
      const found = await ask(site, "stats", { model: again.id, tensor: 0, bins: 4 });
      assert.deepEqual(found, first!.statsSync({ bins: 4 }));
    });
  }
});

describe("many questions", () => {
  test("more than eight at a time are refused, and those that nobody waits for end", async () => {
    const site = await serve([writeLarge("long.gguf", 65_536)]);
    const { id } = await ask(site, "open", { url: "model/0/long.gguf" });
    const picture = JSON.stringify({
      call: "picture",
      argument: { model: id, tensor: 0, width: 4, height: 4 },
    });
    const running = Array.from({ length: 8 }, () => post(site, picture));
    await Promise.all(running.map((sent) => once(sent, "response")));
    await expectRefusal(503, postText(site, picture));
    for (const sent of running) sent.destroy();
    // As soon as their connections are closed there is room for others.
    const small = JSON.stringify({
      call: "values",
      argument: { ...{ model: id, tensor: 0 }, ...{ row: 0, column: 0, rows: 1, columns: 1 } },
    });
    for (let tries = 0; ; tries++) {
      const { status } = await postText(site, small);
      if (status === 200) break;
      assert.ok(status === 503 && tries < 500);
      await delay(10);
    }
  });
  test("eight models are open at a time: the one that was not used for longest is closed", async () => {
    const site = await serve([modelPath]);
    const open = async () => (await ask(site, "open", { url: place })).id;
    const first = await open();
    const second = await open();
    for (let i = 0; i < 6; i++) await open();
    await ask(site, "memory", { model: first, context: 1 });
    await open();
    await ask(site, "memory", { model: first, context: 1 });
    const expected = /the model was closed: reload the page/;
    await assert.rejects(ask(site, "memory", { model: second, context: 1 }), expected);
  });
  test("closing the server ends them", async () => {
    const site = await serve([writeLarge("closing.gguf", 65_536)]);
    const { id } = await ask(site, "open", { url: "model/0/closing.gguf" });
    const sent = post(site, JSON.stringify({ call: "stats", argument: { model: id, tensor: 0, bins: 4 } }));
    const closed = new Promise((resolve) => sent.once("close", resolve)); // after an error, too
    await delay(20);
    await site.close();
    await closed;
  });
});

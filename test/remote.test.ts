/** Files on servers: good ones, broken ones, hostile ones. Over real connections to real servers. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type GgufError, openRemote, parse, type RemoteGgufFile, type RemoteOptions } from "gguf-native";
import { emulated } from "./support/emulated";
import { arr, i32, str, u16, u32, writeGguf } from "./support/gguf-writer";
import { goldenPath } from "./support/golden";
import { projectRoot, temporaryFolder } from "./support/paths";
import { answerRange, freePort, type Handler, rangeOf, rangesOf, serve } from "./support/range-server";
import { sampleModel } from "./support/sample-model";
import { tooLongCode } from "./support/too-long";

const content = sampleModel();
const local = parse(content);

function expectSame(remote: RemoteGgufFile): void {
  assert.equal(remote.version, local.version);
  assert.equal(remote.byteOrder, local.byteOrder);
  assert.equal(remote.byteLength, content.length);
  assert.equal(remote.alignment, local.alignment);
  assert.deepEqual([...remote.metadata], [...local.metadata]);
  assert.deepEqual(
    [...remote.tensors.values()].map((tensor) => tensor.toJSON()),
    [...local.tensors.values()].map((tensor) => tensor.toJSON()),
  );
}

const hash = (bytes: ArrayBufferView) =>
  createHash("sha256")
    .update(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    .digest("hex");

const openAt = async (handler: Handler, options?: RemoteOptions) =>
  openRemote((await serve(handler)).url, options);

/** What every GgufError about a remote file has to be. */
function is(code: string, message: RegExp, status?: number) {
  return (error: GgufError): true => {
    assert.equal(error.name, "GgufError", String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    assert.match(error.path ?? "", /^http:\/\/127\.0\.0\.1:\d+\//);
    assert.ok(error.message.startsWith(`${error.path}: `));
    if (status !== undefined) assert.equal((error.cause as { status?: number }).status, status);
    return true;
  };
}

describe("a server that supports ranges", () => {
  test("the header, and a tensor's own bytes", async () => {
    const { url, requests } = await serve(rangesOf(content, { etag: '"v1"' }));
    const remote = await openRemote(url);
    expectSame(remote);
    assert.deepEqual(remote.paths, [url]);
    assert.equal(requests.length, 1);
    assert.deepEqual(rangeOf(requests[0]!), [0, (512 << 10) - 1]);
    assert.equal(requests[0]!.headers["accept-encoding"], "identity");
    assert.match(inspect(remote), /^RemoteGgufFile \{/);

    const name = "blk.0.attn_q.weight";
    const [tensor, same] = [remote.tensor(name), local.tensor(name)];
    assert.equal(tensor.path, url);
    assert.equal(hash(await tensor.read()), hash(same.bytes()));
    assert.deepEqual(rangeOf(requests[1]!), [same.offset, same.offset + same.byteLength - 1]);
    assert.equal(requests[1]!.headers["if-range"], '"v1"');
    assert.equal(hash(await tensor.dequantize()), hash(same.dequantizeSync()));
    assert.equal(
      hash(await tensor.dequantize({ dtype: "bf16" })),
      hash(same.dequantizeSync({ dtype: "bf16" })),
    );

    const out = new Float32Array(512);
    const part = await tensor.dequantize({ start: 256, end: 768, out });
    assert.equal(part, out);
    assert.deepEqual(part, same.dequantizeSync({ start: 256, end: 768 }));
    assert.deepEqual(rangeOf(requests.at(-1)!), [same.offset + 144, same.offset + 3 * 144 - 1]);
    assert.deepEqual(
      Buffer.from(await tensor.read({ start: 256, end: 512 })),
      Buffer.from(same.bytes().subarray(144, 288)),
    );
    const before = requests.length;
    assert.equal((await tensor.read({ start: 0, end: 0 })).length, 0);
    assert.equal((await tensor.dequantize({ start: 0, end: 0 })).length, 0);
    assert.equal(requests.length, before);

    const seen: [number, number][] = [];
    await tensor.dequantize({ onProgress: (...args) => seen.push(args) });
    assert.deepEqual(seen.at(-1), [tensor.elementCount, tensor.elementCount]);

    remote.close();
    assert.ok(remote.closed);
    await assert.rejects(tensor.read(), { code: "ERR_GGUF_CLOSED", path: url });
    await assert.rejects(tensor.dequantize(), { code: "ERR_GGUF_CLOSED" });
    assert.throws(() => remote.metadata.get("x"), { code: "ERR_GGUF_CLOSED" });
    remote[Symbol.dispose]();
  });

  test("a header of several megabytes grows, and is fetched once", async () => {
    const tokens = Array.from({ length: 200_000 }, (_, i) => `token number ${i}`);
    const big = writeGguf({
      metadata: [
        ["general.architecture", str("big")],
        ["tokenizer.ggml.tokens", arr("string", tokens)],
      ],
      tensors: [{ name: "t", type: 0, shape: [1], bytes: new Uint8Array(Float32Array.of(7).buffer) }],
    });
    const { url, requests } = await serve(rangesOf(big));
    const remote = await openRemote(url);
    assert.deepEqual(remote.metadata.get("tokenizer.ggml.tokens"), tokens);
    let end = 0;
    for (const request of requests) {
      const [first, last] = rangeOf(request);
      assert.equal(first, end);
      end = last + 1;
    }
    assert.ok(requests.length <= 5 && end >= big.length - 64);
    assert.deepEqual(await remote.tensor("t").dequantize(), Float32Array.of(7));
  });

  test("every type, and big-endian files", async () => {
    for (const byteOrder of ["little", "big"] as const) {
      const bytes = new Uint8Array(8);
      const view = new DataView(bytes.buffer);
      view.setFloat32(0, 1.5, byteOrder === "little");
      view.setFloat32(4, -2, byteOrder === "little");
      const file = writeGguf({ byteOrder, tensors: [{ name: "t", type: 0, shape: [2], bytes }] });
      const remote = await openAt(rangesOf(file));
      assert.equal(remote.byteOrder, byteOrder);
      assert.deepEqual(await remote.tensor("t").dequantize(), Float32Array.of(1.5, -2));
    }
    const all = await openAt(rangesOf(readFileSync(goldenPath)));
    const here = parse(readFileSync(goldenPath));
    for (const [name, tensor] of here.tensors) {
      if (!name.endsWith(".gaussian")) continue;
      assert.equal(hash(await all.tensor(name).dequantize()), hash(tensor.dequantizeSync()), name);
    }
  });

  test("the caller's headers and the caller's fetch", async () => {
    const { url, requests } = await serve(rangesOf(content));
    let calls = 0;
    const remote = await openRemote(new URL(`${url}?signature=secret#x`), {
      headers: { authorization: "Bearer x", "x-own": "1" },
      fetch: (...args) => {
        calls++;
        return fetch(...args);
      },
    });
    assert.equal(calls, 1);
    assert.equal(requests[0]!.headers.authorization, "Bearer x");
    assert.equal(requests[0]!.headers["x-own"], "1");
    assert.equal(requests[0]!.url, "/model.gguf?signature=secret");
    assert.deepEqual(remote.paths, [url]); // what is shown has no secrets
  });

  test("redirects are followed, without the authorization if they lead to another origin", async () => {
    const target = await serve(rangesOf(content));
    const { url, requests } = await serve((_, response) =>
      response.writeHead(302, { location: target.url }).end(),
    );
    const remote = await openRemote(url, { headers: { authorization: "Bearer x" } });
    expectSame(remote);
    assert.equal(requests[0]!.headers.authorization, "Bearer x");
    assert.equal(target.requests[0]!.headers.authorization, undefined);
    assert.equal((await remote.tensor("output_norm.weight").read()).length, 2048);
  });

  test("split models open as one", async () => {
    const shard = (no: number, tensors: Parameters<typeof writeGguf>[0] & object) =>
      writeGguf({
        metadata: [
          ["general.architecture", str("test")],
          ["split.no", u16(no)],
          ["split.count", u16(2)],
          ["split.tensors.count", i32(2)],
        ],
        ...tensors,
      });
    const tensor = (name: string, value: number) => ({
      tensors: [{ name, type: 0, shape: [1], bytes: new Uint8Array(Float32Array.of(value).buffer) }],
    });
    const shards = [shard(0, tensor("a", 1)), shard(1, tensor("b", 2))];
    const handler: Handler = (request, response) => {
      const no = Number(/-0000(\d)-of-00002\.gguf\?key=1$/.exec(request.url!)![1]) - 1;
      answerRange(request, response, shards[no]!);
    };
    const { url } = await serve(handler);
    const place = url.replace("model.gguf", "model-00002-of-00002.gguf?key=1");
    const remote = await openRemote(place);
    assert.deepEqual([...remote.tensors.keys()], ["a", "b"]);
    assert.deepEqual(await remote.tensor("b").dequantize(), Float32Array.of(2));
    assert.equal(remote.paths.length, 2);
    const alone = await openRemote(place, { splits: false });
    assert.deepEqual([...alone.tensors.keys()], ["b"]);

    const broken = await serve((request, response) =>
      request.url!.includes("00001") ? response.writeHead(404).end() : handler(request, response),
    );
    await assert.rejects(
      openRemote(broken.url.replace("model.gguf", "model-00002-of-00002.gguf?key=1")),
      is("ERR_GGUF_OPEN", /shard 1 of 2 .* one folder, .*no such file on the server \(404/, 404),
    );
    const refusing = await serve((request, response) =>
      request.url!.includes("00001") ? response.writeHead(403).end() : handler(request, response),
    );
    await assert.rejects(
      openRemote(refusing.url.replace("model.gguf", "model-00002-of-00002.gguf?key=1")),
      is("ERR_GGUF_OPEN", /shard 1 of 2 of the split model: the server refuses/, 403),
    );
  });
});

describe("models of many shards", () => {
  /** The content of shard `no` of `count`, each with one tensor. */
  const shard = (no: number, count: number) =>
    writeGguf({
      metadata: [
        ["split.no", u16(no)],
        ["split.count", u16(count)],
        ["split.tensors.count", i32(count)],
      ],
      tensors: [{ name: `t${no}`, type: 24, shape: [1], bytes: Uint8Array.of(no) }],
    });
  const noOf = (request: IncomingMessage) => Number(/-(\d{5})-of-/.exec(request.url!)![1]) - 1;
  const digits = (number: number) => String(number).padStart(5, "0");
  const modelUrl = (url: string, no: number, count: number) =>
    url.replace("model.gguf", `model-${digits(no + 1)}-of-${digits(count)}.gguf`);

  test("open eight at a time, before the first has answered", async () => {
    let inFlight = 0;
    let most = 0;
    let together = 0;
    const { url, requests } = await serve((request, response) => {
      inFlight++;
      most = Math.max(most, inFlight);
      if (requests.length === 8) together = inFlight;
      setTimeout(() => {
        inFlight--;
        answerRange(request, response, shard(noOf(request), 20));
      }, 300);
    });
    const remote = await openRemote(modelUrl(url, 11, 20));
    assert.deepEqual(
      [...remote.tensors.keys()],
      Array.from({ length: 20 }, (_, no) => `t${no}`),
    );
    assert.deepEqual(
      remote.paths,
      Array.from({ length: 20 }, (_, no) => modelUrl(url, no, 20)),
    );
    assert.equal(noOf(requests[0]!), 11);
    assert.equal(together, 8);
    assert.equal(requests.length, 20);
    assert.equal(most, 8);
  });

  test("a file that is named like one of several, but is not, opens alone", async () => {
    const closed: string[] = [];
    const { url } = await serve((request, response) => {
      if (noOf(request) === 2) return setTimeout(() => answerRange(request, response, content), 100);
      if (noOf(request) === 0) return response.writeHead(404).end();
      // There is no answer to the others.
      request.on("close", () => closed.push(request.url!));
    });
    const remote = await openRemote(modelUrl(url, 2, 5));
    expectSame(remote);
    assert.equal(remote.paths.length, 1);
    while (closed.length < 3) await setImmediate(); // their requests are aborted
  });

  test("the first bad one is reported, whichever is noticed first, and the others are not waited for", async () => {
    const { url, requests } = await serve((request, response) => {
      const no = noOf(request);
      if (no === 1) answerRange(request, response, shard(no, 500));
      else if (no === 2) setTimeout(() => response.writeHead(404).end(), 100);
      else if (no === 3) response.writeHead(403).end();
      else if (no === 4) answerRange(request, response, shard(3, 500));
      else if (no < 2) setTimeout(() => answerRange(request, response, shard(no, 500)), 200);
      // There is no answer to the others.
    });
    await assert.rejects(openRemote(modelUrl(url, 1, 500)), is("ERR_GGUF_OPEN", /shard 3 of 500/, 404));
    assert.ok(requests.length <= 1 + 9, `${requests.length} requests`);
  });

  test("aborting stops all of them", async () => {
    const reason = new Error("enough");
    const controller = new AbortController();
    const { url, requests } = await serve((request, response) => {
      if (noOf(request) === 0) answerRange(request, response, shard(0, 20));
      else if (requests.length === 9) setTimeout(() => controller.abort(reason), 20);
    });
    await assert.rejects(openRemote(modelUrl(url, 0, 20), { signal: controller.signal }), reason);
    assert.equal(requests.length, 9);
  });

  test("keep no more memory than their headers need", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const count = 200;
    // Behind each header come data, which the first request brings along.
    const rest = new Uint8Array(600 << 10);
    const { url } = await serve((request, response) => {
      const no = noOf(request);
      answerRange(request, response, Buffer.concat([shard(no, count), rest]));
    });
    const used = async () => {
      for (let i = 0; i < 5; i++) {
        await setImmediate();
        collect();
      }
      return process.memoryUsage().arrayBuffers;
    };
    const before = await used();
    const remote = await openRemote(modelUrl(url, 0, count));
    const perShard = ((await used()) - before) / count;
    assert.equal(remote.tensors.size, count);
    assert.ok(perShard < 32 << 10, `${perShard} bytes for each shard`);
  });
});

describe("temporary errors", () => {
  for (const status of [408, 429, 500, 502, 503, 504, 507, 520]) {
    test(`${status}, which is retried`, async () => {
      const { url, requests } = await serve((request, response) =>
        requests.length === 1 ? response.writeHead(status).end() : answerRange(request, response, content),
      );
      expectSame(await openRemote(url));
      assert.equal(requests.length, 2);
    });
  }

  test("failures are counted from zero after progress", async () => {
    const bytes = new Uint8Array(10 << 20).map((_, i) => i >> 10);
    const file = writeGguf({ tensors: [{ name: "t", type: 24, shape: [bytes.length], bytes }] });
    const { url, requests } = await serve((request, response) => {
      const [first, last] = rangeOf(request);
      const end = Math.min(last + 1, file.length);
      if (end - first <= 1.5 * 2 ** 20) return answerRange(request, response, file);
      response.writeHead(206, {
        "content-range": `bytes ${first}-${end - 1}/${file.length}`,
        "content-length": end - first,
      });
      // What has not been read when the connection breaks is lost: it is given some time.
      response.write(file.subarray(first, first + 1.5 * 2 ** 20), () =>
        setTimeout(() => response.destroy(), 50),
      );
    });
    const remote = await openRemote(url);
    assert.equal(hash(await remote.tensor("t").read()), hash(bytes));
    assert.ok(requests.length > 1 + 5, `${requests.length} requests`);
  });

  test("500 twice, then good", async () => {
    let failures = 2;
    const { url, requests } = await serve((request, response) =>
      failures-- > 0 ? response.writeHead(500).end("sorry") : answerRange(request, response, content),
    );
    const remote = await openRemote(url);
    expectSame(remote);
    assert.equal(requests.length, 3);
    failures = 2;
    assert.equal((await remote.tensor("output_norm.weight").read()).length, 2048);
    assert.equal(requests.length, 6);
  });

  test("transfers that break in the middle continue there", async () => {
    let breaks = 3;
    const { url, requests } = await serve((request, response) => {
      if (breaks-- <= 0) return answerRange(request, response, content);
      const [first, last] = rangeOf(request);
      response.writeHead(206, {
        "content-range": `bytes ${first}-${last}/${content.length}`,
        "content-length": last - first + 1,
      });
      response.write(content.subarray(first, first + 1000), () => response.destroy());
    });
    const remote = await openRemote(url);
    expectSame(remote);
    const starts = requests.map((request) => rangeOf(request)[0]);
    assert.equal(starts[0], 0);
    for (let i = 1; i < starts.length; i++) assert.ok(starts[i]! >= starts[i - 1]!, String(starts));
    breaks = 2;
    const name = "blk.0.ffn_up.weight";
    assert.equal(hash(await remote.tensor(name).dequantize()), hash(local.tensor(name).dequantizeSync()));
  });

  test("shorter parts than asked for are completed", async () => {
    const { url } = await serve((request, response) => {
      const [first, last] = rangeOf(request);
      const end = Math.min(first + 100_000, last + 1, content.length);
      response.writeHead(206, { "content-range": `bytes ${first}-${end - 1}/${content.length}` });
      response.end(content.subarray(first, end));
    });
    expectSame(await openRemote(url));
  });

  test("the pause that a server requests is kept", async () => {
    let first = true;
    const started = Date.now();
    await openAt((request, response) => {
      if (!first) return answerRange(request, response, content);
      first = false;
      response.writeHead(503, { "retry-after": "1" }).end();
    });
    assert.ok(Date.now() - started >= 990);
  });

  test("until a date as well, by the clock of the server", async () => {
    let first = true;
    const started = Date.now();
    await openAt((request, response) => {
      if (!first) return answerRange(request, response, content);
      first = false;
      const date = "Mon, 01 Jan 2001 00:00:00 GMT";
      response.writeHead(503, { date, "retry-after": "Mon, 01 Jan 2001 00:00:01 GMT" }).end();
    });
    assert.ok(Date.now() - started >= 990);
  });

  test("what is neither seconds nor a date in the future is not waited for", async () => {
    const values = ["soon", "-1", "Mon, 01 Jan 2001 00:00:00 GMT"];
    const started = Date.now();
    await openAt((request, response) => {
      const value = values.pop();
      if (value === undefined) return answerRange(request, response, content);
      response.writeHead(503, { "retry-after": value }).end();
    });
    assert.ok(Date.now() - started < 9_000);
  });
});

describe("permanent errors", () => {
  const statuses: [status: number, message: RegExp][] = [
    [401, /asks for credentials: give headers: \{ authorization: \.\.\. \} \(401 Unauthorized\)/],
    [403, /refuses access.* \(403 Forbidden\)/],
    [404, /no such file on the server \(404 Not Found\)/],
    [410, /removed/],
    [418, /answered 418/],
    [204, /answered 204/],
    [501, /answered 501/],
    [505, /answered 505/],
  ];
  for (const [status, message] of statuses) {
    test(`${status}, which is not retried`, async () => {
      const { url, requests } = await serve((_, response) => response.writeHead(status).end());
      await assert.rejects(openRemote(url), is("ERR_GGUF_OPEN", message, status));
      assert.equal(requests.length, 1);
    });
  }

  test("500 every time", async () => {
    const { url, requests } = await serve((_, response) => response.writeHead(500).end());
    await assert.rejects(
      openRemote(url),
      is("ERR_GGUF_OPEN", /500 Internal Server Error, 5 times in a row/, 500),
    );
    assert.equal(requests.length, 5);
  });

  test("connections that always break", async () => {
    const { url, requests } = await serve((_, response) => response.destroy());
    await assert.rejects(openRemote(url), is("ERR_GGUF_OPEN", /the request failed: .*, 5 times in a row/));
    assert.equal(requests.length, 5);
  });

  test("broken redirects are not retried", async () => {
    const nowhere: [location: string, requests: number][] = [
      ["/model.gguf", 21], // as many as fetch follows
      ["file:///etc/hosts", 1],
      ["http://127.0.0.1:1/", 1], // a port that fetch refuses
      ["http://", 1],
    ];
    for (const [location, count] of nowhere) {
      const { url, requests } = await serve((_, response) => response.writeHead(302, { location }).end());
      await assert.rejects(openRemote(url), is("ERR_GGUF_OPEN", /the request failed: [^,]*$/));
      assert.equal(requests.length, count, location);
    }
  });
  test("no server", async () => {
    const { url } = await serve(() => undefined);
    const port = url.replace(/:\d+/, ":1");
    await assert.rejects(openRemote(port), is("ERR_GGUF_OPEN", /ECONNREFUSED|bad port/));
    await assert.rejects(openRemote("http://nowhere.invalid/model.gguf"), { code: "ERR_GGUF_OPEN" });
  });

  test("a server without ranges, of which the file is not downloaded", async () => {
    let sent = 0;
    let closed = false;
    const { url } = await serve((_, response) => {
      response.writeHead(200, { "content-length": 1e12 });
      const piece = Buffer.alloc(1 << 16);
      const pump = (): void => {
        while (!closed && response.write(piece)) sent += piece.length;
      };
      response.on("drain", pump);
      response.on("close", () => {
        closed = true;
      });
      pump();
    });
    await assert.rejects(openRemote(url), is("ERR_GGUF_OPEN", /whole files only, not ranges/, 200));
    for (let i = 0; !closed && i < 100; i++) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(closed, "the connection was not closed");
    assert.ok(sent < 64 << 20, `${sent} bytes were sent`);
  });

  test("a file that is empty, not a GGUF file, or truncated", async () => {
    await assert.rejects(openAt(rangesOf(new Uint8Array(0))), is("ERR_GGUF_TRUNCATED", /empty/));
    await assert.rejects(
      openAt(rangesOf(Buffer.from("<!DOCTYPE html>"))),
      (error: GgufError) =>
        is("ERR_GGUF_MAGIC", /a web page\? *\)? ?\(at byte 0\)$/)(error) && error.offset === 0,
    );
    const cut = content.subarray(0, content.length - 100_000);
    await assert.rejects(openAt(rangesOf(cut)), is("ERR_GGUF_TRUNCATED", /runs past the end/));
    const remote = await openAt(rangesOf(cut), { partial: true });
    assert.equal(
      (await remote.tensor("token_embd.weight").read()).length,
      local.tensor("token_embd.weight").byteLength,
    );
    await assert.rejects(
      remote.tensor("output_norm.weight").read(),
      is("ERR_GGUF_TRUNCATED", /the file ends at/),
    );
  });
});

describe("a file that changes", () => {
  /** Serves `first` once, and `then` from the next request on. */
  const changing =
    (first: Handler, then: Handler): Handler =>
    (request, response) => {
      const handler = first;
      first = then;
      handler(request, response);
    };
  const cases: [name: string, handler: Handler, message: RegExp][] = [
    [
      "another ETag",
      changing(rangesOf(content, { etag: '"a"' }), rangesOf(content, { etag: '"b"' })),
      /its ETag was "a" and is "b"; open it again/,
    ],
    [
      "another weak ETag",
      changing(rangesOf(content, { etag: 'W/"a"' }), rangesOf(content, { etag: 'W/"b"' })),
      /ETag/,
    ],
    [
      "the whole of another file, because of if-range",
      changing(rangesOf(content, { etag: '"a"' }), (request, response) => {
        assert.equal(request.headers["if-range"], '"a"');
        response.writeHead(200, { etag: '"b"' }).end(content);
      }),
      /its ETag was "a" and is "b"/,
    ],
    [
      "another size",
      changing(rangesOf(content), rangesOf(Buffer.concat([content, content]))),
      /its size was/,
    ],
    ["much shorter", changing(rangesOf(content), rangesOf(content.subarray(0, 10))), /shorter/],
    [
      "another date",
      changing(
        rangesOf(content, { "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT" }),
        rangesOf(content, { "last-modified": "Tue, 02 Jan 2024 00:00:00 GMT" }),
      ),
      /modified on Tue/,
    ],
  ];
  for (const [name, handler, message] of cases) {
    test(name, async () => {
      const remote = await openAt(handler);
      await assert.rejects(remote.tensor("output_norm.weight").read(), is("ERR_GGUF_CHANGED", message));
    });
  }
  test("a weak ETag is compared, but never sent in if-range, which it cannot match", async () => {
    const { url, requests } = await serve(rangesOf(content, { etag: 'W/"a"' }));
    const remote = await openRemote(url);
    await remote.tensor("output_norm.weight").read();
    assert.equal(requests.length, 2);
    assert.equal(requests[1]!.headers["if-range"], undefined);
  });
  test("in the middle of a broken transfer", async () => {
    let requests = 0;
    const handler: Handler = (request, response) => {
      const [first, last] = rangeOf(request);
      if (requests++ > 0) return answerRange(request, response, content, { etag: '"b"' });
      response.writeHead(206, { "content-range": `bytes ${first}-${last}/${content.length}`, etag: '"a"' });
      response.write(content.subarray(0, 5000), () => response.destroy());
    };
    await assert.rejects(openAt(handler), is("ERR_GGUF_CHANGED", /ETag/));
  });
});

describe("hostile servers", () => {
  const head = (range: string, body: Uint8Array = content, headers: Record<string, string> = {}): Handler => {
    return (_, response) => {
      response.writeHead(206, { ...(range && { "content-range": range }), ...headers });
      response.end(body);
    };
  };
  const cases: [name: string, handler: Handler, code: string, message: RegExp][] = [
    ["no content-range", head(""), "ERR_GGUF_OPEN", /which part/],
    ["a content-range without a size", head("bytes 0-99/*"), "ERR_GGUF_OPEN", /which part/],
    ["a content-range that is none", head("bytes 0-99999999999999999999/5"), "ERR_GGUF_OPEN", /which part/],
    ["another part", head("bytes 5-99/1000"), "ERR_GGUF_OPEN", /sent bytes 5 to 99 of 1000 when asked for 0/],
    ["more than was asked for", head(`bytes 0-${1 << 20}/${1 << 30}`), "ERR_GGUF_OPEN", /when asked for/],
    ["a part past the end", head("bytes 0-99/50"), "ERR_GGUF_OPEN", /sent bytes 0 to 99 of 50/],
    [
      "a part much shorter than asked for",
      head("bytes 0-99/1000"),
      "ERR_GGUF_OPEN",
      /sent bytes 0 to 99 of 1000/,
    ],
    ["a part that ends before it starts", head("bytes 0-0/0"), "ERR_GGUF_OPEN", /sent bytes/],
    ["a longer body than announced", head("bytes 0-99/100"), "ERR_GGUF_OPEN", /longer than the 100 bytes/],
    [
      "a compressed body",
      head("bytes 0-99/100", content, { "content-encoding": "identity, gzip" }),
      "ERR_GGUF_OPEN",
      /compresses|failed|broke/,
    ],
  ];
  for (const [name, handler, code, message] of cases) {
    test(name, () => assert.rejects(openAt(handler), is(code, message)));
  }

  const skip = emulated && "an emulated processor takes gigabytes for this";
  test("an endless body and an endless header take bounded memory", { skip }, async () => {
    const program = `
      const { createServer } = require("node:http");
      const { openRemote } = require(${JSON.stringify(projectRoot)});
      const start = Buffer.alloc(64);
      start.write("GGUF"); start.writeUInt32LE(3, 4); start.writeBigUInt64LE(1n, 16);
      start.writeBigUInt64LE(1n, 24); start.write("k", 32); start.writeUInt32LE(8, 33);
      start.writeBigUInt64LE(1n << 44n, 37); // a string of 16 TiB
      const piece = Buffer.alloc(1 << 20);
      const server = createServer((request, response) => {
        const [, first, last] = /(\\d+)-(\\d+)/.exec(request.headers.range).map(Number);
        response.writeHead(206, { "content-range": \`bytes \${first}-\${last}/\${2 ** 49}\` });
        let left = request.url === "/endless" ? Infinity : last - first + 1;
        if (first === 0) { response.write(start); left -= start.length; }
        const pump = () => {
          while (left > 0) {
            const part = piece.subarray(0, Math.min(left, piece.length));
            left -= part.length;
            if (!response.write(part)) return;
          }
          response.end();
        };
        response.on("drain", pump);
        pump();
      });
      server.listen(0, "127.0.0.1", async () => {
        let peak = 0;
        setInterval(() => { peak = Math.max(peak, process.memoryUsage().rss); }, 5).unref();
        const messages = [];
        for (const path of ["/endless", "/header"]) {
          await openRemote(\`http://127.0.0.1:\${server.address().port}\${path}\`).catch((error) => messages.push(error.message));
        }
        console.log(JSON.stringify({ peak, messages }));
        process.exit();
      });`;
    const { stdout, stderr } = spawnSync(process.execPath, ["-e", program], {
      encoding: "utf8",
      timeout: 120_000,
    });
    assert.equal(stderr, "");
    const { peak, messages } = JSON.parse(stdout) as { peak: number; messages: string[] };
    assert.match(messages[0]!, /longer than the 524288 bytes/);
    assert.match(messages[1]!, /the header is longer than 268435456 bytes/);
    assert.ok(peak < 1.5e9, `${peak} bytes`);
  });

  test("a tensor of a size that nobody has is refused, not allocated", async () => {
    const size = 2 ** 44;
    const start = writeGguf({
      tensors: [{ name: "t", type: 24, shape: [2 ** 43], bytes: new Uint8Array(0) }],
    });
    const remote = await openAt((request, response) => {
      const [first, last] = rangeOf(request);
      response.writeHead(206, { "content-range": `bytes ${first}-${last}/${size}` });
      response.end(Buffer.concat([start, Buffer.alloc(1 << 20)]).subarray(first, last + 1));
    });
    const code = tooLongCode(2 ** 43);
    await assert.rejects(remote.tensor("t").read(), { code });
    await assert.rejects(remote.tensor("t").dequantize(), { code });
  });
});

describe("aborting", () => {
  const reason = new Error("enough");
  const abortSoon = () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 50);
    return controller.signal;
  };
  const silent: Handler = () => undefined;
  const halting: Handler = (request, response) => {
    const [first, last] = rangeOf(request);
    response.writeHead(206, { "content-range": `bytes ${first}-${last}/${content.length}` });
    response.write(content.subarray(0, 100));
  };
  test("before anything", async () => {
    const { url, requests } = await serve(silent);
    await assert.rejects(openRemote(url, { signal: AbortSignal.abort(reason) }), reason);
    assert.equal(requests.length, 0);
  });
  test("while a server does not answer", () =>
    assert.rejects(openAt(silent, { signal: abortSoon() }), reason));
  test("while a server does not continue", () =>
    assert.rejects(openAt(halting, { signal: abortSoon() }), reason));
  test("while waiting for a retry", async () => {
    const started = Date.now();
    const handler: Handler = (_, response) => response.writeHead(503, { "retry-after": "9" }).end();
    await assert.rejects(openAt(handler, { signal: abortSoon() }), reason);
    assert.ok(Date.now() - started < 5000);
  });
  test("with a fetch that ignores signals", async () => {
    const deaf: typeof fetch = (url, init) => fetch(url, { ...init, signal: null });
    await assert.rejects(openAt(silent, { fetch: deaf, signal: abortSoon() }), reason);
    await assert.rejects(openAt(halting, { fetch: deaf, signal: abortSoon() }), reason);
  });
  test("while a tensor is fetched; the next one works", async () => {
    let stuck = false;
    const remote = await openAt((request, response) =>
      (stuck ? halting : rangesOf(content))(request, response),
    );
    const tensor = remote.tensor("blk.0.ffn_up.weight");
    stuck = true;
    await assert.rejects(tensor.read({ signal: abortSoon() }), reason);
    await assert.rejects(tensor.dequantize({ signal: abortSoon() }), reason);
    await assert.rejects(tensor.dequantize({ signal: AbortSignal.abort(reason) }), reason);
    stuck = false;
    const failure = new Error("mine");
    const onProgress = () => {
      throw failure;
    };
    await assert.rejects(tensor.dequantize({ onProgress }), failure);
    assert.equal((await tensor.read()).length, tensor.byteLength);
  });
});

const nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].find((path) => existsSync(path));
describe("nginx", {
  skip: nginx === undefined && "nginx is not installed (apt-get install nginx-light)",
}, () => {
  test("ranges, an ETag that changes, no ranges, no right, no file", async () => {
    const folder = temporaryFolder();
    const port = await freePort();
    const config = `
      ${process.getuid?.() === 0 ? "user root;" : ""} daemon off; worker_processes 1;
      pid ${folder}/pid; error_log ${folder}/error.log;
      events {}
      http {
        access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
        fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
        gzip on; gzip_types *; gzip_min_length 1;
        server {
          listen 127.0.0.1:${port}; root ${folder};
          location /whole/ { alias ${folder}/; max_ranges 0; }
          location /denied/ { deny all; }
          location /moved/ { return 302 /model.gguf; }
        }
      }`;
    writeFileSync(join(folder, "nginx.conf"), config);
    const path = join(folder, "model.gguf");
    writeFileSync(path, content);
    const server = spawn(nginx as string, [
      "-e",
      join(folder, "error.log"),
      "-c",
      join(folder, "nginx.conf"),
    ]);
    try {
      const base = `http://127.0.0.1:${port}`;
      for (let i = 0; i < 100; i++) {
        if (
          await fetch(base).then(
            () => true,
            () => false,
          )
        )
          break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const remote = await openRemote(`${base}/model.gguf`);
      expectSame(remote);
      for (const name of ["token_embd.weight", "blk.1.ffn_down.weight"]) {
        assert.equal(hash(await remote.tensor(name).dequantize()), hash(local.tensor(name).dequantizeSync()));
      }
      expectSame(await openRemote(`${base}/moved/model.gguf`));
      await assert.rejects(
        openRemote(`${base}/whole/model.gguf`),
        is("ERR_GGUF_OPEN", /whole files only/, 200),
      );
      await assert.rejects(openRemote(`${base}/denied/model.gguf`), {
        code: "ERR_GGUF_OPEN",
        message: /403/,
      });
      await assert.rejects(openRemote(`${base}/model-none.gguf`), is("ERR_GGUF_OPEN", /404/, 404));
      writeFileSync(join(folder, "model-empty.gguf"), "");
      await assert.rejects(openRemote(`${base}/model-empty.gguf`), is("ERR_GGUF_TRUNCATED", /empty/));

      writeFileSync(path, content);
      utimesSync(path, 1, 1);
      await assert.rejects(remote.tensor("token_embd.weight").read(), is("ERR_GGUF_CHANGED", /ETag/));
    } finally {
      const ended = once(server, "exit");
      server.kill();
      await ended;
    }
  });
});

test("wrong arguments", async () => {
  const { url } = await serve(rangesOf(content));
  const remote = await openRemote(url);
  const tensor = remote.tensor("output_norm.weight");
  const refuses = (promise: Promise<unknown>, code = "ERR_INVALID_ARG_TYPE") =>
    assert.rejects(promise, { code });
  for (const wrong of [5, null, undefined, {}, []]) await refuses(openRemote(wrong as never));
  await refuses(openRemote("model.gguf"), "ERR_INVALID_ARG_VALUE");
  await refuses(openRemote("file:///model.gguf"), "ERR_INVALID_ARG_VALUE");
  await refuses(openRemote("http://me:secret@127.0.0.1/"), "ERR_INVALID_ARG_VALUE");
  await assert.rejects(
    openRemote("http://me:secret@127.0.0.1/"),
    (error: Error) => !/secret/.test(error.message),
  );
  await refuses(openRemote(url, 5 as never));
  await refuses(openRemote(url, { fetch: 5 as never }));
  await refuses(openRemote(url, { signal: 5 as never }));
  await refuses(openRemote(url, { splits: 5 as never }));
  await refuses(openRemote(url, { partial: 5 as never }));
  await assert.rejects(openRemote(url, { headers: { "not a header": "x" } }), TypeError);
  await refuses(tensor.read(5 as never));
  await refuses(tensor.read({ start: "1" as never }));
  await refuses(tensor.read({ signal: 5 as never }));
  await refuses(tensor.dequantize({ out: [] as never }));
  await refuses(tensor.dequantize({ onProgress: 5 as never }));
  await refuses(tensor.read({ start: 10_000 }), "ERR_GGUF_RANGE");
  await refuses(tensor.read({ start: 2, end: 1 }), "ERR_GGUF_RANGE");
  await refuses(remote.tensor("token_embd.weight").read({ start: 1 }), "ERR_GGUF_RANGE");
  assert.throws(() => remote.tensor("none"), { code: "ERR_GGUF_TENSOR_NOT_FOUND" });
  const odd = await openAt(
    rangesOf(
      writeGguf({
        metadata: [["x", u32(1)]],
        tensors: [{ name: "o", type: 4, shape: [32], bytes: new Uint8Array(32) }],
      }),
    ),
  );
  await refuses(odd.tensor("o").read(), "ERR_GGUF_UNSUPPORTED_TYPE");
  await refuses(odd.tensor("o").dequantize(), "ERR_GGUF_UNSUPPORTED_TYPE");
});

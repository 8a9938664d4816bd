/** Files on servers: good ones, broken ones, hostile ones. Over real connections to real servers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { openRemote, parse } from "gguf-native";
import { start } from "../support/child";
import { arr, splitKeys, str, type TensorSpec, writeGguf } from "../support/gguf-writer";
import { goldenPath } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { answerRange, freePort, type Handler, rangeOf, rangesOf, serve } from "../support/range-server";
import { content, expectSame, hash, isRemoteError, local, openAt } from "../support/remote-model";

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
    const found = hash(await tensor.dequantize({ dtype: "bf16" }));
    assert.equal(found, hash(same.dequantizeSync({ dtype: "bf16" })));

    const out = new Float32Array(512);
    const part = await tensor.dequantize({ start: 256, end: 768, out });
    assert.equal(part, out);
    assert.deepEqual(part, same.dequantizeSync({ start: 256, end: 768 }));
    assert.deepEqual(rangeOf(requests.at(-1)!), [same.offset + 144, same.offset + 3 * 144 - 1]);
    const actual = Buffer.from(await tensor.read({ start: 256, end: 512 }));
    assert.deepEqual(actual, Buffer.from(same.bytes().subarray(144, 288)));
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
    const { url, requests } = await serve((_, response) => response.writeHead(302, { location: target.url }).end());
    const remote = await openRemote(url, { headers: { authorization: "Bearer x" } });
    expectSame(remote);
    assert.equal(requests[0]!.headers.authorization, "Bearer x");
    assert.equal(target.requests[0]!.headers.authorization, undefined);
    assert.equal((await remote.tensor("output_norm.weight").read()).length, 2048);
  });

  test("split models open as one", async () => {
    const shard = (no: number, tensors: TensorSpec[]) =>
      writeGguf({ metadata: [["general.architecture", str("test")], ...splitKeys(no, 2, 2)], tensors });
    const tensor = (name: string, value: number) => [
      { name, type: 0, shape: [1], bytes: new Uint8Array(Float32Array.of(value).buffer) },
    ];
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

    const refusing = await serve((request, response) =>
      request.url!.includes("00001") ? response.writeHead(403).end() : handler(request, response),
    );
    await assert.rejects(
      openRemote(refusing.url.replace("model.gguf", "model-00002-of-00002.gguf?key=1")),
      isRemoteError("ERR_GGUF_OPEN", /shard 1 of 2 of the split model: the server refuses/, 403),
    );
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
  test("while a server does not answer", () => assert.rejects(openAt(silent, { signal: abortSoon() }), reason));
  test("while a server does not continue", () => assert.rejects(openAt(halting, { signal: abortSoon() }), reason));
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
    const remote = await openAt((request, response) => (stuck ? halting : rangesOf(content))(request, response));
    const tensor = remote.tensor("blk.0.ffn_up.weight");
    stuck = true;
    await assert.rejects(tensor.read({ signal: abortSoon() }), reason);
    await assert.rejects(tensor.dequantize({ signal: abortSoon() }), reason);
    stuck = false;
    assert.equal((await tensor.read()).length, tensor.byteLength);
  });
});

const nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].find((path) => process.platform !== "win32" && existsSync(path));
const needsNginx = { skip: nginx === undefined && "nginx is not installed (apt-get install nginx-light)" };
describe("nginx", needsNginx, () => {
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
    const server = start(nginx as string, ["-e", join(folder, "error.log"), "-c", join(folder, "nginx.conf")]);
    try {
      const base = `http://127.0.0.1:${port}`;
      for (let i = 0; i < 100; i++) {
        if (await fetch(base).catch(() => undefined)) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const remote = await openRemote(`${base}/model.gguf`);
      expectSame(remote);
      for (const name of ["token_embd.weight", "blk.1.ffn_down.weight"]) {
        assert.equal(hash(await remote.tensor(name).dequantize()), hash(local.tensor(name).dequantizeSync()));
      }
      expectSame(await openRemote(`${base}/moved/model.gguf`));
      const expected = isRemoteError("ERR_GGUF_OPEN", /whole files only/, 200);
      await assert.rejects(openRemote(`${base}/whole/model.gguf`), expected);
      await assert.rejects(openRemote(`${base}/denied/model.gguf`), isRemoteError("ERR_GGUF_OPEN", /403/, 403));
      await assert.rejects(openRemote(`${base}/model-none.gguf`), isRemoteError("ERR_GGUF_OPEN", /404/, 404));
      writeFileSync(join(folder, "model-empty.gguf"), "");
      await assert.rejects(openRemote(`${base}/model-empty.gguf`), isRemoteError("ERR_GGUF_TRUNCATED", /empty/));

      writeFileSync(path, content);
      utimesSync(path, 1, 1);
      await assert.rejects(remote.tensor("token_embd.weight").read(), isRemoteError("ERR_GGUF_CHANGED", /ETag/));
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
  const refuses = (promise: Promise<unknown>, code = "ERR_INVALID_ARG_TYPE") => assert.rejects(promise, { code });
  for (const wrong of [5, null, undefined, {}, []]) await refuses(openRemote(wrong as never));
  await refuses(openRemote("model.gguf"), "ERR_INVALID_ARG_VALUE");
  await refuses(openRemote("file:///model.gguf"), "ERR_INVALID_ARG_VALUE");
  const hidden = { code: "ERR_INVALID_ARG_VALUE", message: /^(?!.*secret)/s };
  await assert.rejects(openRemote("http://me:secret@127.0.0.1/"), hidden);
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
  const unknown = writeGguf({ tensors: [{ name: "o", type: 4, shape: [32], bytes: new Uint8Array(32) }] });
  const odd = await openAt(rangesOf(unknown));
  await refuses(odd.tensor("o").read(), "ERR_GGUF_UNSUPPORTED_TYPE");
  await refuses(odd.tensor("o").dequantize(), "ERR_GGUF_UNSUPPORTED_TYPE");
});

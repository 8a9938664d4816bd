/** A split model on a server. */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openRemote } from "gguf-native";
import { splitKeys, writeGguf } from "../support/gguf-writer";
import { answerRange, serve } from "../support/range-server";
import { content, expectSame, isRemoteError } from "../support/remote-model";

describe("models of many shards", () => {
  /** The content of shard `no` of `count`, each with one tensor. */
  const shard = (no: number, count: number) =>
    writeGguf({
      metadata: splitKeys(no, count, count),
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
    const expected = Array.from({ length: 20 }, (_, no) => modelUrl(url, no, 20));
    assert.deepEqual(remote.paths, expected);
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
    const missing = /shard 3 of 500 .* one folder, .*no such file on the server \(404/;
    await assert.rejects(openRemote(modelUrl(url, 1, 500)), isRemoteError("ERR_GGUF_OPEN", missing, 404));
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
    // Behind each header come data, which come with the first request.
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

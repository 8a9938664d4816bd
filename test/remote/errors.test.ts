/** Errors of servers: which requests are sent again, and what the others are called. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufError, openRemote } from "gguf-native";
import { writeGguf } from "../support/gguf-writer";
import { answerRange, rangeOf, rangesOf, serve } from "../support/range-server";
import { content, expectSame, hash, isRemoteError, local, openAt } from "../support/remote-model";

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
      response.write(file.subarray(first, first + 1.5 * 2 ** 20), () => setTimeout(() => response.destroy(), 50));
    });
    const remote = await openRemote(url);
    assert.equal(hash(await remote.tensor("t").read()), hash(bytes));
    assert.ok(requests.length > 1 + 5, `${requests.length} requests`);
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

  const date = "Mon, 01 Jan 2001 00:00:00 GMT";
  /** What an answer says of the next try, and the pause that follows: a number, or what the first failure has alone. */
  const pauses: [headers: Record<string, string>, ms: number | "usual"][] = [
    [{ "retry-after": "2" }, 2000],
    [{ "retry-after": "10" }, 10_000],
    // No server keeps a program waiting for longer.
    [{ "retry-after": "11" }, 10_000],
    [{ "retry-after": "86400" }, 10_000],
    [{ date, "retry-after": "Mon, 01 Jan 2001 00:00:02 GMT" }, 2000], // by the clock of the server
    [{ date, "retry-after": "Tue, 02 Jan 2001 00:00:00 GMT" }, 10_000],
    [{ "retry-after": "soon" }, "usual"],
    [{ "retry-after": "-1" }, "usual"],
    [{ "retry-after": date }, "usual"],
    [{}, "usual"],
  ];
  for (const [headers, expected] of pauses) {
    test(`the pause after ${JSON.stringify(headers)}`, async (context) => {
      let waited: number | undefined;
      const { setTimeout } = globalThis;
      const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
        if (waited === undefined) {
          // Nothing else runs before the pause begins.
          const pause = context.mock.method(globalThis, "setTimeout", (done: () => void, ms: number) => {
            waited = ms;
            pause.mock.restore();
            return setTimeout(done, 0);
          });
          return new Response(null, { status: 503, headers });
        }
        const [, first, last] = /(\d+)-(\d+)/.exec(String(new Headers(init?.headers).get("range"))) ?? [];
        const part = content.slice(Number(first), Number(last) + 1);
        const range = `bytes ${first}-${Number(first) + part.length - 1}/${content.length}`;
        return new Response(part, { status: 206, headers: { "content-range": range } });
      };
      expectSame(await openRemote("http://127.0.0.1/model.gguf", { fetch: fetch as typeof globalThis.fetch }));
      if (expected !== "usual") assert.equal(waited, expected);
      else assert.ok(waited !== undefined && waited >= 150 && waited <= 250, `${waited} ms`);
    });
  }
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
      await assert.rejects(openRemote(url), isRemoteError("ERR_GGUF_OPEN", message, status));
      assert.equal(requests.length, 1);
    });
  }

  test("500 every time", async () => {
    const { url, requests } = await serve((_, response) => response.writeHead(500).end());
    const expected = isRemoteError("ERR_GGUF_OPEN", /500 Internal Server Error, 5 times in a row/, 500);
    await assert.rejects(openRemote(url), expected);
    assert.equal(requests.length, 5);
  });

  test("connections that always break", async () => {
    const { url, requests } = await serve((_, response) => response.destroy());
    await assert.rejects(openRemote(url), isRemoteError("ERR_GGUF_OPEN", /the request failed: .*, 5 times in a row/));
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
      await assert.rejects(openRemote(url), isRemoteError("ERR_GGUF_OPEN", /the request failed: [^,]*$/));
      assert.equal(requests.length, count, location);
    }
  });
  test("no server", async () => {
    const { url } = await serve(() => undefined);
    const port = url.replace(/:\d+/, ":1");
    await assert.rejects(openRemote(port), isRemoteError("ERR_GGUF_OPEN", /ECONNREFUSED|bad port/));
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
    await assert.rejects(openRemote(url), isRemoteError("ERR_GGUF_OPEN", /whole files only, not ranges/, 200));
    for (let i = 0; !closed && i < 100; i++) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(closed, "the connection was not closed");
    assert.ok(sent < 64 << 20, `${sent} bytes were sent`);
  });

  test("a file that is empty, not a GGUF file, or truncated", async () => {
    await assert.rejects(openAt(rangesOf(new Uint8Array(0))), isRemoteError("ERR_GGUF_TRUNCATED", /empty/));
    await assert.rejects(
      openAt(rangesOf(Buffer.from("<!DOCTYPE html>"))),
      (error: GgufError) =>
        isRemoteError("ERR_GGUF_MAGIC", /a web page\? *\)? ?\(at byte 0\)$/)(error) && error.offset === 0,
    );
    const cut = content.subarray(0, content.length - 100_000);
    await assert.rejects(
      openAt(rangesOf(cut)),
      isRemoteError("ERR_GGUF_TRUNCATED", /incomplete: has [\d,]+ bytes, needs [\d,]+;/),
    );
    const remote = await openAt(rangesOf(cut), { partial: true });
    const found = (await remote.tensor("token_embd.weight").read()).length;
    assert.equal(found, local.tensor("token_embd.weight").byteLength);
    await assert.rejects(
      remote.tensor("output_norm.weight").read(),
      isRemoteError("ERR_GGUF_TRUNCATED", /the file ends at/),
    );
  });
});

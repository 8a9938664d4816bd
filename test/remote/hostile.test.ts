/** Servers whose file changes, and hostile ones. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openRemote } from "gguf-native";
import { outcomeOfLine } from "../support/child";
import { emulated } from "../support/emulated";
import { writeGguf } from "../support/gguf-writer";
import { projectRoot } from "../support/paths";
import { answerRange, type Handler, rangeOf, rangesOf, serve } from "../support/range-server";
import { content, isRemoteError, openAt } from "../support/remote-model";
import { tooLongCode } from "../support/too-long";

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
    ["another weak ETag", changing(rangesOf(content, { etag: 'W/"a"' }), rangesOf(content, { etag: 'W/"b"' })), /ETag/],
    [
      "the whole of another file, because of if-range",
      changing(rangesOf(content, { etag: '"a"' }), (request, response) => {
        assert.equal(request.headers["if-range"], '"a"');
        response.writeHead(200, { etag: '"b"' }).end(content);
      }),
      /its ETag was "a" and is "b"/,
    ],
    ["another size", changing(rangesOf(content), rangesOf(Buffer.concat([content, content]))), /its size was/],
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
      const expected = isRemoteError("ERR_GGUF_CHANGED", message);
      await assert.rejects(remote.tensor("output_norm.weight").read(), expected);
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
    await assert.rejects(openAt(handler), isRemoteError("ERR_GGUF_CHANGED", /ETag/));
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
    ["a part much shorter than asked for", head("bytes 0-99/1000"), "ERR_GGUF_OPEN", /sent bytes 0 to 99 of 1000/],
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
    test(name, () => assert.rejects(openAt(handler), isRemoteError(code, message)));
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
    const { stdout, stderr } = await outcomeOfLine(["-e", program]);
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

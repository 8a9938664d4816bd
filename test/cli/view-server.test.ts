/** The server of `gguf-native view`: what it hands out, to whom, and what it makes of files that change. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, describe, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { GgufError, openRemote, parse, splitModel } from "gguf-native";
import { patch, replace } from "../support/changes";
import { start } from "../support/child";
import { emulated } from "../support/emulated";
import { temporaryFolder, writeIn } from "../support/paths";
import { sampleModel } from "../support/sample-model";
import {
  type Answer,
  ask,
  askPaused,
  askRaw,
  descriptorsOf,
  type Site,
  serveSite,
  viewServer,
} from "../support/view-site";

const SCRIPT = "\n  document.title = 'é';\n";
const OTHER_SCRIPT = "1 // <style> no style </style>";
const STYLE = "body { color: red }";
const PAGE = `<!doctype html><meta charset="utf-8"><title>page</title><style>${STYLE}</style>
<script type="module">${SCRIPT}</script><SCRIPT>${OTHER_SCRIPT}</SCRIPT>`;

const folder = realpathSync(temporaryFolder());
const content = Buffer.from(sampleModel());

/** Writes a file; its path. Files that tests change have names of their own. */
const write = (name: string, bytes: Uint8Array = content) => writeIn(folder, name, bytes);

const serve = (...models: (readonly string[])[]) => serveSite(PAGE, models);
const modelPath = write("model.gguf");
const model = (site: Site) => `${site.base}model/0/model.gguf`;
const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** What every answer has, whatever was asked. */
const STRICT = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
  "content-security-policy": [
    "default-src 'none'",
    `script-src ${sha256(SCRIPT)} ${sha256(OTHER_SCRIPT)} 'wasm-unsafe-eval'`,
    `style-src ${sha256(STYLE)}`,
    "worker-src blob:",
    "connect-src 'self'",
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
};

function expectStrict({ headers }: Answer, expected: Record<string, string> = STRICT): void {
  for (const [name, value] of Object.entries(expected)) assert.equal(headers[name], value, name);
  const loose = Object.keys(headers).filter((name) =>
    /^(access-control-|set-cookie|server|x-powered-by|location)/.test(name),
  );
  assert.deepEqual(loose, []);
}

/** An answer that has nothing of the page or the file, and says why in one line. */
async function expectRefusal(status: number, asked: Promise<Answer>): Promise<Answer> {
  const answer = await asked;
  assert.equal(answer.status, status, answer.body.toString());
  assert.equal(answer.headers["content-type"], "text/plain; charset=utf-8");
  assert.match(answer.body.toString(), /^([ -~]{5,100}\n)?$/);
  expectStrict(answer);
  return answer;
}

/** Waits for what happens soon. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5);
}

describe("the page", () => {
  test("has an address that cannot be guessed, on this machine only", async () => {
    const [one, two] = [await serve([modelPath]), await serve([modelPath])];
    for (const { url } of [one, two]) {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{43}\/\?url=model\/0\/model\.gguf$/);
    }
    assert.notEqual(one.base, two.base);
    const elsewhere = connect({ port: one.port, host: "127.0.0.2" });
    await assert.rejects(once(elsewhere, "connect"));
  });
  test("comes as it is, with a policy for its own scripts and styles", async () => {
    const site = await serve([modelPath]);
    for (const path of [site.base, `${site.base}?url=model/0/model.gguf`, `${site.base}?`]) {
      const answer = await ask(site, path);
      assert.equal(answer.status, 200);
      assert.equal(answer.body.toString(), PAGE);
      assert.equal(answer.headers["content-type"], "text/html; charset=utf-8");
      expectStrict(answer);
    }
    const head = await ask(site, site.base, {}, "HEAD");
    assert.deepEqual([head.status, head.body.length], [200, 0]);
    assert.equal(head.headers["content-length"], String(Buffer.byteLength(PAGE)));
    expectStrict(head);
  });
  test("line ends are those that a browser hashes", async () => {
    const windows = await serveSite("<script>\r\n1\r\n</script>", [[modelPath]]);
    const { body, headers } = await ask(windows, windows.base);
    assert.equal(body.toString(), "<script>\n1\n</script>");
    const policy = headers["content-security-policy"] as string;
    assert.ok(policy.includes(`script-src ${sha256("\n1\n")} 'wasm-unsafe-eval'; style-src 'none';`), policy);
  });
});

describe("the way to the page without its token", async () => {
  const site = await serve([modelPath]);

  test("is short, has no secret, and runs and loads nothing but its own script and style", async () => {
    for (const path of ["/", "/?", "/?url=model/0/model.gguf", `/?${site.base}`]) {
      const answer = await ask(site, path);
      assert.equal(answer.status, 200, path);
      assert.equal(answer.headers["content-type"], "text/html; charset=utf-8");
      const text = answer.body.toString();
      assert.ok(text.length < 2000 && !text.includes(site.base.slice(1, -1)) && !text.includes("model.gguf"));
      const [, style = ""] = /<style>(.*?)<\/style>/s.exec(text)!;
      const [, script = ""] = /<script>(.*?)<\/script>/s.exec(text)!;
      const policy = [
        ...["default-src 'none'", `script-src ${sha256(script)}`, `style-src ${sha256(style)}`],
        ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
      ].join("; ");
      expectStrict(answer, { ...STRICT, "content-security-policy": policy });
    }
    const head = await ask(site, "/", {}, "HEAD");
    assert.deepEqual([head.status, head.body.length], [200, 0]);
  });
  test("earns no trust: what follows such a request is not read", async () => {
    const host = `Host: 127.0.0.1:${site.port}\r\n\r\n`;
    for (const [path, status] of [
      ["/", 200],
      ["/x/", 404],
    ]) {
      const answers = await askRaw(site, `GET ${path} HTTP/1.1\r\n${host}GET ${site.base} HTTP/1.1\r\n${host}`);
      assert.deepEqual(answers.match(/HTTP\/1\.1 \d+/g), [`HTTP/1.1 ${status}`]);
      assert.ok(!answers.includes(PAGE));
    }
  });
});

describe("who may ask", async () => {
  const site = await serve([modelPath]);
  const own = `127.0.0.1:${site.port}`;
  /** The page, the file, and the way to the page. */
  const places = [site.base, model(site), "/"];

  test("Host is the server's own", async () => {
    for (const path of places) {
      for (const host of [own, `localhost:${site.port}`, `LOCALHOST:${site.port}`]) {
        assert.equal((await ask(site, path, { host })).status, 200, host);
      }
      for (const host of [
        ...["example.com", `example.com:${site.port}`, "127.0.0.1", "localhost", "127.0.0.1:1", ":"],
        ...[`127.0.0.1.example.com:${site.port}`, `127.0.0.1:${site.port}.example.com`, `x@${own}`],
        ...[`[::1]:${site.port}`, `127.1:${site.port}`, `0.0.0.0:${site.port}`, `localhost.:${site.port}`],
        ...[`127a0b0c1:${site.port}`, `${own}, example.com`],
      ]) {
        await expectRefusal(421, ask(site, path, { host }));
      }
    }
  });
  test("there is exactly one Host", async () => {
    const line = `GET ${site.base} HTTP/1.1\r\n`;
    assert.match(await askRaw(site, `${line}\r\n`), /^HTTP\/1\.1 400 /);
    for (const [first, second] of [
      [own, "example.com"],
      ["example.com", own],
    ]) {
      const answer = await askRaw(site, `${line}Host: ${first}\r\nHost: ${second}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 4(00|21) /);
      assert.ok(!answer.includes("<title>"));
    }
    assert.match(await askRaw(site, `GET ${site.base} HTTP/1.0\r\n\r\n`), /^HTTP\/1\.1 421 /);
    assert.match(await askRaw(site, `${line}Host:\r\nConnection: close\r\n\r\n`), /^HTTP\/1\.1 421 /);
  });
  test("other sites may not, whatever way they send a browser", async () => {
    for (const path of places) {
      for (const headers of [
        { origin: "http://example.com" },
        { origin: "null" },
        { origin: "" },
        { origin: `https://${own}` },
        { origin: "http://127.0.0.1:1" },
        { origin: "http://127.0.0.1" },
        { origin: `http://localhost:${site.port}` },
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
        { "sec-fetch-site": "" },
        { origin: `http://${own}`, "sec-fetch-site": "cross-site" },
      ]) {
        await expectRefusal(403, ask(site, path, headers as Record<string, string>));
      }
      for (const headers of [
        { origin: `http://${own}` },
        { origin: `http://localhost:${site.port}`, host: `localhost:${site.port}` },
        { "sec-fetch-site": "same-origin" },
        { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
      ]) {
        assert.equal((await ask(site, path, headers as Record<string, string>)).status, 200);
      }
    }
  });
  test("GET and HEAD only", async () => {
    for (const path of places) {
      for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]) {
        const { headers } = await expectRefusal(405, ask(site, path, {}, method));
        assert.equal(headers.allow, "GET, HEAD");
      }
    }
    const preflight = { origin: "http://example.com", "access-control-request-method": "GET" };
    await expectRefusal(405, ask(site, model(site), preflight, "OPTIONS"));
    assert.match(await askRaw(site, `BREW / HTTP/1.1\r\nHost: ${own}\r\n\r\n`), /^HTTP\/1\.1 400 /);
    assert.equal(await askRaw(site, `CONNECT ${own} HTTP/1.1\r\nHost: ${own}\r\n\r\n`), "");
    const body = "x".repeat(100_000);
    const post = `POST ${site.base} HTTP/1.1\r\nHost: ${own}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    assert.match(await askRaw(site, post), /^HTTP\/1\.1 405 /);
    assert.deepEqual(readFileSync(modelPath), content);
  });
  test("without the token there is nothing but the way to the page", async () => {
    const token = site.base.slice(1, -1);
    const changed = `${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`;
    for (const prefix of [
      ...["//", "/x/", `/${changed}/`, `/${token.slice(1)}/`, `/${token}x/`, `/x${token}/`, `//${token}/`],
      ...[`/${token.toUpperCase()}/`, `/x/${token}/`, `/#/${token}/`, `/%2f${token}/`, "/%3f", "/#"],
    ]) {
      const answers = [];
      for (const path of ["", "model/0/model.gguf", "?url=model/0/model.gguf"]) {
        answers.push(await expectRefusal(404, ask(site, prefix + path)));
      }
      const bodies = new Set(answers.map(({ body }) => body.toString()));
      assert.equal(bodies.size, 1, "nothing tells a good path from a bad one");
    }
    await expectRefusal(404, ask(site, site.base.slice(0, -1)));
    for (const path of ["/model/0/model.gguf", "/ask", "/index.html", "/favicon.ico"]) {
      await expectRefusal(404, ask(site, path));
    }
  });
});

describe("what there is", () => {
  test("nothing but the named files, whatever the path", async () => {
    write("secret.gguf");
    const site = await serve([modelPath]);
    const places = [
      "/model.gguf/ /MODEL.gguf /../0/model.gguf /../secret.gguf /%2e%2e/secret.gguf /secret.gguf",
      "/..%2fsecret.gguf /..%5csecret.gguf /..\\secret.gguf /model.gguf%00 /%00 /model.gguf%20 /model.gguf;x",
      `/%ff /%252e%252e%252fsecret.gguf /${modelPath} /${encodeURIComponent(modelPath)}`,
    ];
    const others = [
      "model model/ model/0 model/0/ model/1/model.gguf 0/model.gguf model//0/model.gguf model/-0/model.gguf",
      "./model/0/model.gguf ../model.gguf ..%2f..%2fetc%2fpasswd ../../../../../../etc/passwd //etc/passwd",
      `/etc/passwd %2fetc%2fpasswd ${modelPath.slice(1)} file://${modelPath} % %zz %c0%ae%c0%ae/model.gguf`,
      `__proto__ constructor toString index.html favicon.ico ${"x".repeat(5000)}`,
    ];
    for (const path of [
      ...places.flatMap((line) => line.split(" ")).map((path) => `model/0${path}`),
      ...others.flatMap((line) => line.split(" ")),
    ]) {
      await expectRefusal(404, ask(site, site.base + path));
    }
    const absolute = `GET http://127.0.0.1:${site.port}${model(site)} HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\nConnection: close\r\n\r\n`;
    assert.match(await askRaw(site, absolute), /^HTTP\/1\.1 404 /);
  });
  test("files of any name, and of one name", async () => {
    mkdirSync(join(folder, "other"), { recursive: true });
    const odd = process.platform === "win32" ? "é #%41&=+ 漢.gguf" : "é #%41?&=+\\\"'<b>\n漢\u202e.gguf";
    const paths = [write(odd), write(join("other", odd), content.subarray(0, 1000)), modelPath];
    const site = await serve([paths[0]!, paths[2]!], [paths[1]!]);
    const { searchParams, origin } = new URL(site.url);
    const urls = searchParams.getAll("url").map((url) => new URL(url, site.url));
    assert.match(site.url, /^[!-~]+$/);
    const found = urls.map((url) => decodeURIComponent(url.pathname.slice(site.base.length)));
    assert.deepEqual(found, [`model/0/${odd}`, `model/1/${odd}`]);
    const bodies = await Promise.all(
      [...urls.map(String), `${origin}${site.base}model/0/model.gguf`].map(async (url) =>
        Buffer.from(await (await fetch(url)).arrayBuffer()),
      ),
    );
    const lengths = bodies.map(({ length }) => length);
    assert.deepEqual(lengths, [content.length, 1000, content.length]);
    await expectRefusal(404, ask(site, `${site.base}model/1/model.gguf`));
  });
  test("a file that cannot be opened is an error, and closes the others", async () => {
    for (const [path, message] of [
      [join(folder, "none.gguf"), /no such file/],
      [folder, /it is a directory/],
    ] as const) {
      await assert.rejects(serve([modelPath, path]), { name: "GgufError", code: "ERR_GGUF_OPEN", message });
    }
    const other = write("closed.gguf");
    await assert.rejects(serve([other], [join(folder, "none.gguf")]), GgufError);
    assert.ok([0, undefined].includes(descriptorsOf(other)));
  });
  test("a port that is taken is an error that says so", async () => {
    const { port } = await serve([modelPath]);
    const path = write("port.gguf");
    await assert.rejects(serveSite(PAGE, [[path]], port), {
      message: `port ${port} cannot be used: another program uses it; take another --port, or none`,
    });
    assert.ok([0, undefined].includes(descriptorsOf(path)));
  });
});

describe("ranges", async () => {
  const site = await serve([modelPath]);
  const size = content.length;
  const { etag } = (await ask(site, model(site), {}, "HEAD")).headers as { etag: string };
  const get = (headers: Record<string, string>, method?: string) => ask(site, model(site), headers, method);

  test("the whole file where none is asked for", async () => {
    const answer = await get({});
    assert.equal(answer.status, 200);
    assert.ok(answer.body.equals(content));
    assert.equal(answer.headers["content-type"], "application/octet-stream");
    assert.equal(answer.headers["accept-ranges"], "bytes");
    assert.match(answer.headers.etag!, /^"[!-~]{10,}"$/);
    expectStrict(answer);
  });
  test("one range", async () => {
    for (const [range, begin, end] of [
      ["bytes=0-0", 0, 1],
      ["bytes=5-9", 5, 10],
      ["BYTES=5-9", 5, 10],
      ["bytes= 5-9 ", 5, 10],
      ["bytes=0-", 0, size],
      [`bytes=${size - 1}-`, size - 1, size],
      [`bytes=1-${size + 1000}`, 1, size],
      ["bytes=100-99999999999999999999999", 100, size],
      ["bytes=-1", size - 1, size],
      ["bytes=-100", size - 100, size],
      ["bytes=-99999999999999999999999", 0, size],
      ["bytes=300000-900000", 300_000, 900_001],
    ] as const) {
      const answer = await get({ range });
      assert.equal(answer.status, 206, range);
      assert.equal(answer.headers["content-range"], `bytes ${begin}-${end - 1}/${size}`);
      assert.equal(answer.headers["content-length"], String(end - begin));
      assert.equal(answer.headers.etag, etag);
      assert.ok(answer.body.equals(content.subarray(begin, end)), range);
      expectStrict(answer);
    }
  });
  test("beyond the end", async () => {
    for (const range of [`bytes=${size}-`, `bytes=${size}-${size + 5}`, "bytes=99999999999999999999-", "bytes=-0"]) {
      const { headers } = await expectRefusal(416, get({ range }));
      assert.equal(headers["content-range"], `bytes */${size}`);
    }
  });
  test("several ranges, other units and nonsense give the whole file", async () => {
    for (const range of [
      ...["bytes=0-1,5-9", "bytes=0-1, -5", "items=0-1", "bytes=", "bytes=-", "bytes=9-5", "bytes=a-b"],
      ...["bytes=0x1-5", "bytes=--5", "bytes=1-5;", "bytes=1.5-9", "bytes=٣-٤", "bytes 0-5", "=0-5", "0-5", "bytes"],
    ]) {
      const sent = Buffer.from(range).toString("latin1");
      const answer = await get({ range: sent });
      assert.equal(answer.status, 200, range);
      assert.equal(answer.headers["content-range"], undefined);
      assert.equal(answer.body.length, size);
    }
  });
  test("HEAD has the headers of the whole file", async () => {
    for (const range of ["", "bytes=5-9", `bytes=${size}-`]) {
      const answer = await get(range === "" ? {} : { range }, "HEAD");
      assert.deepEqual([answer.status, answer.body.length], [200, 0]);
      assert.equal(answer.headers["content-length"], String(size));
      assert.equal(answer.headers["content-range"], undefined);
      assert.equal(answer.headers.etag, etag);
      expectStrict(answer);
    }
  });
  test("If-Range: the range of that file, or the whole one as it is now", async () => {
    assert.equal((await get({ range: "bytes=5-9", "if-range": etag })).status, 206);
    for (const other of ['"other"', `W/${etag}`, etag.slice(1, -1), new Date().toUTCString(), ""]) {
      const answer = await get({ range: "bytes=5-9", "if-range": other });
      assert.deepEqual([answer.status, answer.body.length], [200, size], other);
    }
    // A range that is beyond the end is none of another file.
    assert.equal((await get({ range: `bytes=${size}-`, "if-range": '"other"' })).status, 200);
  });
  test("If-Match and If-None-Match", async () => {
    for (const value of [etag, "*", `"other", ${etag}`]) {
      assert.equal((await get({ range: "bytes=5-9", "if-match": value })).status, 206);
      const unchanged = await get({ "if-none-match": value });
      assert.deepEqual([unchanged.status, unchanged.body.length], [304, 0]);
      expectStrict(unchanged);
    }
    for (const value of ['"other"', `W/${etag}`, ""]) {
      await expectRefusal(412, get({ "if-match": value }));
    }
    assert.equal((await get({ range: "bytes=5-9", "if-none-match": '"other"' })).status, 206);
  });
  test("an empty file has none", async () => {
    const empty = await serve([write("empty.gguf", new Uint8Array())]);
    const path = `${empty.base}model/0/empty.gguf`;
    const whole = await ask(empty, path);
    assert.deepEqual([whole.status, whole.headers["content-length"], whole.body.length], [200, "0", 0]);
    for (const range of ["bytes=0-0", "bytes=0-", "bytes=-1", "bytes=5-9"]) {
      const { headers } = await expectRefusal(416, ask(empty, path, { range }));
      assert.equal(headers["content-range"], "bytes */0");
    }
  });
});

describe("a file that changes", () => {
  /** Opens over the server, changes the file, and reads: an error, and no numbers. */
  async function expectChanged(name: string, change: (path: string) => void, code: string): Promise<void> {
    const path = write(name);
    utimesSync(path, 1e9, 1e9); // a whole second: times in milliseconds put it back as it was
    const site = await serve([path]);
    const url = new URL(`model/0/${name}`, site.url);
    const remote = await openRemote(url);
    const tensor = remote.tensor("blk.0.attn_k.weight");
    const expected = parse(content).tensor(tensor.name).dequantizeSync();
    assert.deepEqual(await tensor.dequantize(), expected);
    change(path);
    await assert.rejects(tensor.dequantize(), { name: "GgufError", code });
  }
  for (const [what, change] of Object.entries({
    "in place": (path) => patch(path, Buffer.alloc(1000), 2_000_000),
    "in place, with its old size and time of writing": (path) => {
      const { atime, mtime } = statSync(path);
      assert.equal(mtime.getTime() % 1000, 0); // so that it is put back to the nanosecond
      patch(path, Buffer.alloc(1000), 2_000_000);
      utimesSync(path, atime, mtime);
    },
    longer: (path) => appendFileSync(path, "x"),
    shorter: (path) => truncateSync(path, content.length - 1),
    empty: (path) => truncateSync(path, 0),
  } satisfies Record<string, (path: string) => void>)) {
    test(what, () => expectChanged("changed.gguf", change, "ERR_GGUF_CHANGED"));
  }
  const kept = process.platform === "win32" && "Windows refuses it for files that are open";
  test("replaced or removed", { skip: kept }, async () => {
    await expectChanged("replaced.gguf", (path) => replace(path, content), "ERR_GGUF_OPEN");
    await expectChanged("removed.gguf", (path) => rmSync(path), "ERR_GGUF_OPEN");
    const path = write("gone.gguf");
    const site = await serve([path]);
    rmSync(path);
    const { body } = await expectRefusal(410, ask(site, `${site.base}model/0/gone.gguf`));
    assert.match(body.toString(), /start it again/);
  });
  test("in place, it can be opened again", async () => {
    const path = write("again.gguf");
    const site = await serve([path]);
    const before = await ask(site, `${site.base}model/0/again.gguf`, {}, "HEAD");
    patch(path, Buffer.from([1, 2, 3]), content.length - 3);
    const after = await ask(site, `${site.base}model/0/again.gguf`, { range: "bytes=-3" });
    assert.notEqual(after.headers.etag, before.headers.etag);
    assert.deepEqual([...after.body], [1, 2, 3]);
  });
  test("in the middle of an answer ends it early", async () => {
    const path = write("middle.gguf", Buffer.alloc(64 << 20, 1));
    const site = await serve([path]);
    const { response } = await askPaused(site, `${site.base}model/0/middle.gguf`);
    await delay(20);
    // No byte of the new content comes under the name of the old one.
    writeFileSync(path, Buffer.alloc(64 << 20, 2));
    let received = 0;
    await assert.rejects(async () => {
      for await (const chunk of response) {
        received += chunk.length;
        assert.ok(!chunk.includes(2), "a byte of the new content");
      }
    }, /aborted|ECONNRESET/);
    assert.ok(received < 64 << 20);
  });
});

describe("many requests", () => {
  test("several hundred at once get what they ask for", { skip: emulated && "too slow" }, async () => {
    const site = await serve([modelPath]);
    const url = new URL("model/0/model.gguf", site.url);
    const count = 600;
    const answers = await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const begin = Math.floor((i * content.length) / count);
        const response = await fetch(url, { headers: { range: `bytes=${begin}-${begin + 9999}` } });
        return [begin, response.status, Buffer.from(await response.arrayBuffer())] as const;
      }),
    );
    for (const [begin, status, body] of answers) {
      assert.equal(status, 206);
      assert.ok(body.equals(content.subarray(begin, begin + 10_000)));
    }
    assert.ok([1, undefined].includes(descriptorsOf(modelPath)), "one descriptor for all");
  });
  test("that are aborted leave nothing", async () => {
    const path = write("aborted.gguf", Buffer.alloc(64 << 20));
    const site = await serve([path]);
    const before = process.memoryUsage().arrayBuffers;
    const open = () => askPaused(site, `${site.base}model/0/aborted.gguf`);
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
    const idle = sockets();
    for (let round = 0; round < 3; round++) {
      const requests = await Promise.all(Array.from({ length: 100 }, open));
      for (const { sent } of requests) sent.destroy();
    }
    await until(() => sockets() <= idle);
    assert.ok([1, undefined].includes(descriptorsOf(path)));
    // Collections free memory some time after they end.
    let kept = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 100 && kept >= 32 << 20; tries++) {
      globalThis.gc?.();
      await delay(20);
      kept = process.memoryUsage().arrayBuffers - before;
    }
    assert.ok(kept < 32 << 20, `${kept} bytes are kept`);
    assert.equal((await ask(site, `${site.base}model/0/aborted.gguf`, { range: "bytes=0-9" })).status, 206);
  });
  test("are answered no faster than they are read", async () => {
    const path = write("slow.gguf", Buffer.alloc(256 << 20));
    const site = await serve([path]);
    const before = process.memoryUsage().arrayBuffers;
    const { sent } = await askPaused(site, `${site.base}model/0/slow.gguf`);
    await delay(200);
    const held = process.memoryUsage().arrayBuffers - before;
    sent.destroy();
    assert.ok(held < 64 << 20, `${held} bytes are held`);
  });
  test("headers are limited", async () => {
    const site = await serve([modelPath]);
    const text = `GET ${site.base} HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\nX: ${"x".repeat(20_000)}\r\n\r\n`;
    assert.match(await askRaw(site, text), /^HTTP\/1\.1 431 /);
  });
});

describe("clients that take more than they should", { skip: emulated && "too slow" }, () => {
  /** A server in a process of its own, whose memory is only the server's. */
  async function serveApart(path: string): Promise<Site & { pid: number }> {
    const program = `const { serveView } = require(${JSON.stringify(viewServer)});
      serveView(${JSON.stringify(PAGE)}, [[${JSON.stringify(path)}]], 0).then(({ url }) => console.log(url));`;
    const child = start(process.execPath, ["-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
      limit: 600_000,
    });
    const close = async () => void child.kill();
    after(close);
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const { href: url, port, pathname: base } = new URL(String(line).trim());
    return { url, port: Number(port), base, pid: child.pid as number, close };
  }
  /** Connections that send a text and read nothing, until the test ends. */
  async function attack(t: TestContext, { port }: Site, count: number, text: string): Promise<Socket[]> {
    const sockets = Array.from({ length: count }, () => {
      const socket = connect(port, "127.0.0.1").on("error", () => undefined);
      socket.pause().write(text);
      return socket;
    });
    t.after(() => {
      for (const socket of sockets) socket.destroy();
    });
    await Promise.all(sockets.map((socket) => once(socket, "connect").catch(() => undefined)));
    return sockets;
  }
  const getPage = async (site: Site) => (await ask(site, site.base)).body.toString();

  for (const [what, text] of [
    ["silent", ""],
    ["half a request", "GET / HTTP/1.1\r\nHost: x\r\n"],
  ] as const) {
    test(`3,000 connections without the token, ${what}: the page comes all the same`, async (t) => {
      const site = await serveApart(modelPath);
      const sockets = await attack(t, site, 3000, text);
      assert.ok(sockets.length === 3000);
      for (let i = 0; i < 20; i++) assert.equal(await getPage(site), PAGE);
    });
  }
  test("a connection that has shown the token gives way to none without", async (t) => {
    const site = await serveApart(modelPath);
    const own = connect(site.port, "127.0.0.1");
    t.after(() => own.destroy());
    own.write(`HEAD ${site.base} HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\n\r\n`);
    await once(own, "data");
    await attack(t, site, 1500, "");
    own.write(`HEAD ${site.base} HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\n\r\n`);
    assert.match(String(await once(own, "data")), /^HTTP\/1\.1 200 /);
  });
  test("requests that are sent at once are answered in their order", async () => {
    const site = await serve([modelPath]);
    const host = `Host: 127.0.0.1:${site.port}\r\n`;
    const requests = Array.from(
      { length: 20 },
      (_, i) => `GET ${model(site)} HTTP/1.1\r\n${host}Range: bytes=${i}-${i}\r\n`,
    );
    const answers = await askRaw(site, `${requests.join("\r\n")}Connection: close\r\n\r\n`);
    const ranges = Array.from(answers.matchAll(/content-range: bytes (\d+)-/gi), ([, first]) => first);
    assert.equal(ranges.join(), [...Array(20).keys()].join());
  });
  test("thousands of requests with the token whose answers nobody reads: under 200 MB", {
    skip: process.platform !== "linux" && "no /proc",
  }, async (t) => {
    const path = write("unread.gguf", Buffer.alloc(64 << 20));
    const site = await serveApart(path);
    const request = `GET ${model(site).replace("model.gguf", "unread.gguf")} HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\n\r\n`;
    await attack(t, site, 4, request.repeat(20_000));
    await attack(t, site, 900, request.repeat(3));
    for (let i = 0; i < 5; i++) {
      await delay(500);
      assert.equal(await getPage(site), PAGE);
    }
    const [, peak] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${site.pid}/status`, "utf8")) ?? [];
    assert.ok(Number(peak) < 200 << 10, `${peak} kB`);
  });
  test("half a request is given up after ten seconds", async (t) => {
    const site = await serveApart(modelPath);
    const [half] = await attack(t, site, 1, "GET / HTTP/1.1\r\n");
    const begin = performance.now();
    const closed = once(half as Socket, "close");
    (half as Socket).resume();
    await closed;
    assert.ok(performance.now() - begin < 25_000); // Node's own check comes every 30 seconds
  });
});

test("closing ends every answer at once, and closes the files", async () => {
  const path = write("closing.gguf", Buffer.alloc(64 << 20));
  const site = await serve([path]);
  const begun = Array.from({ length: 20 }, () => askPaused(site, `${site.base}model/0/closing.gguf`));
  const open = await Promise.all(begun);
  const idle = connect(site.port, "127.0.0.1"); // connected, and silent
  await once(idle, "connect");
  const closedIdle = once(idle, "close");
  const broken = open.map(({ response }) => assert.rejects(response.resume().toArray(), /aborted|ECONNRESET/));
  await site.close();
  await Promise.all([...broken, closedIdle]);
  assert.ok([0, undefined].includes(descriptorsOf(path)));
  await assert.rejects(ask(site, site.base), /ECONNREFUSED/);
});

describe("the library reads a model over it", () => {
  const expected = parse(content);

  async function expectSame(url: URL): Promise<void> {
    const remote = await openRemote(url);
    assert.equal(remote.tensors.size, expected.tensors.size);
    assert.deepEqual(remote.metadata.get("general.name"), expected.metadata.get("general.name"));
    for (const { name, type, shape } of expected.tensors.values()) {
      const tensor = remote.tensor(name);
      assert.deepEqual([tensor.type, tensor.shape], [type, shape]);
      const numbers = await tensor.dequantize();
      assert.ok(Buffer.from(numbers.buffer).equals(Buffer.from(expected.tensor(name).dequantizeSync().buffer)), name);
    }
  }

  test("in one file", async () => {
    const site = await serve([modelPath]);
    await expectSame(new URL(new URL(site.url).searchParams.get("url")!, site.url));
  });
  test("in several, from any of them", async () => {
    const paths = await splitModel(modelPath, join(folder, "parts"), { maxTensors: 8 });
    assert.ok(paths.length > 2);
    for (const path of [paths[0]!, paths[1]!]) {
      const site = await serve([path, ...paths.filter((other) => other !== path)]);
      await expectSame(new URL(new URL(site.url).searchParams.get("url")!, site.url));
    }
  });
});

/** Hugging Face's hub: hf: URLs, and where its token goes. */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { afterEach, describe, test } from "node:test";
import { openRemote } from "gguf-native";
import { expectFailure, run } from "../support/cli";
import { answerRange, serve } from "../support/range-server";
import { sampleModel } from "../support/sample-model";

const content = sampleModel();
const TOKEN = "hf_secret123";

afterEach(() => {
  for (const name of ["HF_TOKEN", "HF_ENDPOINT"]) delete process.env[name];
});

/** Opens a URL with a fetch that answers nothing, and returns what it was asked for. */
async function asked(url: string, options: { headers?: Record<string, string> } = {}) {
  const requests: { url: string; authorization: string | null }[] = [];
  const fetch = async (input: unknown, init?: RequestInit): Promise<Response> => {
    requests.push({ url: String(input), authorization: new Headers(init?.headers).get("authorization") });
    return new Response(null, { status: 404 });
  };
  await assert.rejects(openRemote(url, { fetch: fetch as typeof globalThis.fetch, ...options }), {
    code: "ERR_GGUF_OPEN",
  });
  assert.equal(requests.length, 1);
  return requests[0]!;
}

describe("hf: URLs", () => {
  const hub = "https://huggingface.co";
  for (const [url, expected] of Object.entries({
    "hf://owner/name/model.gguf": `${hub}/owner/name/resolve/main/model.gguf`,
    "HF://Owner/Na.me_1/deep/er/model.gguf": `${hub}/Owner/Na.me_1/resolve/main/deep/er/model.gguf`,
    "hf://owner/name@v1.0/model.gguf": `${hub}/owner/name/resolve/v1.0/model.gguf`,
    "hf://owner/name@refs/pr/1/model.gguf": `${hub}/owner/name/resolve/refs%2Fpr%2F1/model.gguf`,
    "hf://owner/name@refs%2Fpr%2F1/model.gguf": `${hub}/owner/name/resolve/refs%2Fpr%2F1/model.gguf`,
    "hf://owner/name@a@b/model.gguf": undefined,
    "hf://datasets/owner/name/model.gguf": `${hub}/datasets/owner/name/resolve/main/model.gguf`,
    "hf://models/owner/name/model.gguf": `${hub}/owner/name/resolve/main/model.gguf`,
    "hf://owner/name/a b#c?d%20.gguf": `${hub}/owner/name/resolve/main/a%20b%23c%3Fd%20.gguf`,
    "hf://owner/name/a@b.gguf": `${hub}/owner/name/resolve/main/a%40b.gguf`,
    "hf://owner/name": undefined,
    "hf://owner/name/": undefined,
    "hf://owner/name/../../other/x.gguf": undefined,
    "hf://owner/name/%2e%2e/x.gguf": undefined,
    "hf://owner/name/..%2F..%2Fx.gguf": undefined,
    "hf://owner/name@../x.gguf": undefined,
    "hf://owner/name@./x.gguf": undefined,
    "hf://owner/name@%2e%2e/x.gguf": undefined,
    "hf://owner/name@.%2E/x.gguf": undefined,
    "hf://owner/name@..%2F../x.gguf": undefined,
    "hf://owner/name@refs/pr/../x.gguf": undefined,
    "hf://owner/name@refs%2f..%2f..%2fx/y.gguf": undefined,
    "hf://owner/name@v1..2/x.gguf": `${hub}/owner/name/resolve/v1..2/x.gguf`,
    "hf://../name/x.gguf": undefined,
    "hf://owner/./x.gguf": undefined,
    "hf:owner/name/x.gguf": undefined,
    "hf://user:pass@host/name/x.gguf": undefined,
  })) {
    test(url, async () => {
      if (expected !== undefined) assert.equal((await asked(url)).url, expected);
      else {
        await assert.rejects(openRemote(url), { name: "TypeError" });
        // To the command line, a repository is a model of safetensors.
        if (/^hf:\/\/owner\/name\/?$/.test(url)) return;
        await expectFailure(["inspect", url], 2, /./);
      }
    });
  }
  test("by HF_ENDPOINT, also below a path", async () => {
    process.env.HF_ENDPOINT = "https://mirror.example/hub/";
    assert.equal((await asked("hf://o/n/m.gguf")).url, "https://mirror.example/hub/o/n/resolve/main/m.gguf");
    for (const wrong of ["nonsense", "file:///x", "https://user:pass@mirror.example"]) {
      process.env.HF_ENDPOINT = wrong;
      await assert.rejects(openRemote("hf://o/n/m.gguf"), /HF_ENDPOINT/);
    }
  });
});

describe("HF_TOKEN", () => {
  test("is sent to the hub alone", async () => {
    process.env.HF_TOKEN = ` ${TOKEN}\n`;
    const bearer = `Bearer ${TOKEN}`;
    for (const [url, expected] of [
      ["hf://o/n/m.gguf", bearer],
      ["https://huggingface.co/o/n/resolve/main/m.gguf", bearer],
      ["https://HuggingFace.co:443/o/n/resolve/main/m.gguf", bearer],
      ["http://huggingface.co/o/n/resolve/main/m.gguf", null],
      ["https://huggingface.co:8443/m.gguf", null],
      ["https://huggingface.co.evil.example/m.gguf", null],
      ["https://cdn.huggingface.co/m.gguf", null],
      ["https://evil.example/huggingface.co/m.gguf", null],
      ["https://evil.example/m.gguf?https://huggingface.co", null],
    ] as const) {
      assert.equal((await asked(url)).authorization, expected, url);
    }
  });
  test("gives way to headers", async () => {
    process.env.HF_TOKEN = TOKEN;
    const headers = { Authorization: "Bearer other" };
    assert.equal((await asked("hf://o/n/m.gguf", { headers })).authorization, "Bearer other");
  });
  test("goes to HF_ENDPOINT in place of the hub, if nobody reads along", async () => {
    process.env.HF_TOKEN = TOKEN;
    process.env.HF_ENDPOINT = "https://mirror.example";
    assert.equal((await asked("hf://o/n/m.gguf")).authorization, `Bearer ${TOKEN}`);
    assert.equal((await asked("https://huggingface.co/o/n/resolve/main/m.gguf")).authorization, null);
    process.env.HF_ENDPOINT = "http://mirror.example";
    assert.equal((await asked("hf://o/n/m.gguf")).authorization, null);
  });
  test("that is none is an error that does not repeat it, for the hub only", async () => {
    process.env.HF_TOKEN = "two\nlines";
    const expected = ({ message }: Error) => /HF_TOKEN has characters/.test(message) && !message.includes("lines");
    await assert.rejects(openRemote("hf://o/n/m.gguf"), expected);
    assert.equal((await asked("https://evil.example/m.gguf")).authorization, null);
    process.env.HF_TOKEN = "";
    assert.equal((await asked("hf://o/n/m.gguf")).authorization, null);
  });

  /** A hub on this machine that sends the client to another server for the file, as the real one does. */
  async function hubWithStore() {
    const seen: { hub: IncomingMessage[]; store: IncomingMessage[] } = { hub: [], store: [] };
    const store = await serve((request, response) => {
      seen.store.push(request);
      answerRange(request, response, content);
    });
    const hub = await serve((request, response) => {
      seen.hub.push(request);
      if (request.headers.authorization !== `Bearer ${TOKEN}`) response.writeHead(401).end();
      else response.writeHead(302, { location: store.url }).end();
    });
    process.env.HF_ENDPOINT = new URL(hub.url).origin;
    return seen;
  }
  test("does not go to where the hub redirects", async () => {
    const seen = await hubWithStore();
    process.env.HF_TOKEN = TOKEN;
    const file = await openRemote("hf://o/n@main/model.gguf");
    await file.tensor("output_norm.weight").dequantize();
    assert.ok(seen.hub.length > 0 && seen.store.length > 0);
    assert.ok(seen.hub.every(({ url }) => url === "/o/n/resolve/main/model.gguf"));
    for (const { headers, rawHeaders } of seen.store) {
      assert.equal(headers.authorization, undefined);
      assert.ok(!rawHeaders.join().includes(TOKEN));
    }
  });
  test("in the command line, and what to do without it", async () => {
    await hubWithStore();
    await expectFailure(["inspect", "hf://o/n/model.gguf"], 1, /401.*set HF_TOKEN to an access token/);
    process.env.HF_TOKEN = TOKEN;
    const { status, stdout, stderr } = await run(["inspect", "hf://o/n/model.gguf"]);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^model\.gguf\n {2}architecture +llama\n/);
    await expectFailure(["set", "hf://o/n/model.gguf", "a", "b"], 2, /files on this machine only/);
  });
});

/** `open`: one call for models of either format, wherever they are. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { GgufFile, type GgufModel, open, RemoteGgufFile, SafetensorsFile } from "gguf-native";
import { goldenPath } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { rangesOf, serve } from "../support/range-server";
import { safetensorsOf } from "../support/safetensors-files";

const folder = temporaryFolder();
const NAME = "model.safetensors";
const golden = readFileSync(goldenPath);
const checkpoint = safetensorsOf({
  t: { dtype: "F32", shape: [2], bytes: new Uint8Array(Float32Array.of(1.5, -2).buffer) },
});
const checkpointPath = join(folder, NAME);
writeFileSync(checkpointPath, checkpoint);
let server = "";

/** For one test. */
async function startServer(): Promise<void> {
  const { url } = await serve((request, response) => {
    const bytes = request.url?.includes("safetensors") ? checkpoint : golden;
    return rangesOf(bytes, { etag: '"v1"' })(request, response);
  });
  server = new URL(url).origin;
  process.env.HF_ENDPOINT = server;
}

before(() => {
  // As Ollama keeps its models: a manifest that names a blob.
  const digest = "a".repeat(64);
  const manifests = join(folder, "manifests", "registry.ollama.ai", "library", "tiny");
  mkdirSync(manifests, { recursive: true });
  mkdirSync(join(folder, "blobs"));
  writeFileSync(join(folder, "blobs", `sha256-${digest}`), golden);
  const layers = [{ mediaType: "application/vnd.ollama.image.model", digest: `sha256:${digest}`, size: golden.length }];
  writeFileSync(join(manifests, "latest"), JSON.stringify({ layers }));
  process.env.OLLAMA_MODELS = folder;
});

const blob = (bytes: Uint8Array, name: string): Blob =>
  Object.assign(new Blob([bytes.slice() as Uint8Array<ArrayBuffer>]), { name });

type Kind = typeof GgufFile | typeof RemoteGgufFile | typeof SafetensorsFile;
const PLACES: readonly [what: string, place: () => string | URL | Blob, kind: Kind][] = [
  ["a path", () => goldenPath, GgufFile],
  ["a file: URL", () => pathToFileURL(goldenPath), GgufFile],
  ["a file: URL as text", () => pathToFileURL(goldenPath).href, GgufFile],
  ["a name of Ollama's", () => "ollama://tiny", GgufFile],
  ["a file of safetensors", () => checkpointPath, SafetensorsFile],
  ["its file: URL", () => pathToFileURL(checkpointPath), SafetensorsFile],
  ["its folder", () => folder, SafetensorsFile],
  ["a URL", () => `${server}/golden.gguf`, RemoteGgufFile],
  ["a URL as an object", () => new URL(`${server}/golden.gguf`), RemoteGgufFile],
  ["a URL of safetensors", () => `${server}/${NAME}?download=true`, SafetensorsFile],
  ["a file of the hub", () => "hf://owner/name/golden.gguf", RemoteGgufFile],
  ["a Blob", () => blob(golden, "golden.gguf"), RemoteGgufFile],
  ["a Blob of safetensors", () => blob(checkpoint, NAME), SafetensorsFile],
];

describe("open", () => {
  for (const [what, place, kind] of PLACES) {
    test(`${what}: ${kind.name}`, async () => {
      await startServer();
      // Options for other places are no mistake: one call is for all of them.
      const model: GgufModel = await open(place() as string, { access: "read", headers: { a: "b" } });
      assert.ok(model instanceof kind);
      const isSafetensors = kind === SafetensorsFile;
      assert.equal(model.format, isSafetensors ? "safetensors" : "gguf");
      assert.equal(model.byteLength, (isSafetensors ? checkpoint : golden).length);
      const name = isSafetensors ? "t" : "Q4_0.random.blocks";
      const tensor = model.tensor(model.tensors.has(name) ? name : [...model.tensors.keys()][0]!);
      assert.ok((await tensor.dequantize()).length > 0);
      model.close();
    });
  }

  const REFUSED: readonly [what: string, place: unknown, expected: object][] = [
    ["no place", undefined, { code: "ERR_INVALID_ARG_TYPE", message: /"place".*string.*URL.*Blob/ }],
    ["another scheme", "ftp://host/x.gguf", { code: "ERR_INVALID_ARG_VALUE", message: /open\(\) opens/ }],
    ["an object that is no Blob", { arrayBuffer: 1 }, { code: "ERR_INVALID_ARG_TYPE" }],
    ["what is not there", join(folder, "none.gguf"), { code: "ERR_GGUF_OPEN" }],
  ];
  for (const [what, place, expected] of REFUSED) {
    test(`${what} is an error`, () => assert.rejects(open(place as string), expected));
  }

  test("an option that it does not know, and a signal that is aborted, are errors wherever the model is", async () => {
    await startServer();
    const reason = new Error("enough");
    for (const [, place] of PLACES) {
      const unknown = open(place() as string, { split: false } as object);
      await assert.rejects(unknown, { code: "ERR_INVALID_ARG_VALUE", message: /split.*splits/s });
      const aborted = open(place() as string, { signal: AbortSignal.abort(reason) });
      await assert.rejects(aborted, (error) => error === reason);
    }
  });
});

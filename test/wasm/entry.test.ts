/** `gguf-native/wasm`, bundled for browsers and run in headless Chromium, and in Node: what the addon finds, to the bit. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { compileFunction, createContext } from "node:vm";
import { type GgufTensor, ggmlTypes, matmulSync, openSafetensors, openSync, quantizeSync } from "gguf-native";
import { DTYPES } from "#dist/safetensors/dtypes";
import { bundleForBrowser, CSP, ISOLATED, noChromium, POLICY, runInChromium } from "../support/browser";
import { goldenPath } from "../support/golden";
import { projectRoot } from "../support/paths";
import { type Handler, rangesOf, serve } from "../support/range-server";
import { safetensorsOf } from "../support/safetensors-files";
import { compiledModule, Module, needsModule } from "../support/wasm";
import {
  bitsOf,
  LARGE,
  type TensorFacts,
  textOf,
  vectors,
  type WasmInput,
  type WasmResult,
} from "../support/wasm-facts";

const golden = readFileSync(goldenPath);
const file = openSync(goldenPath);

function factsOf(tensor: GgufTensor): TensorFacts {
  return {
    numbers: bitsOf(tensor.dequantizeSync()),
    stats: textOf(tensor.statsSync({ bins: 4 })),
    products: bitsOf(tensor.matmulSync(vectors(tensor.shape[0]!))),
    int8Products: bitsOf(tensor.matmulSync(vectors(tensor.shape[0]!), { activations: "int8" })),
  };
}

/** Types of safetensors that are the same in GGUF, and some that are not. */
const stored = Object.fromEntries(
  (["F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "I64", "U8", "U16"] as const).map((dtype) => [
    dtype,
    { dtype, shape: [256 / DTYPES[dtype].bytes], bytes: Uint8Array.from({ length: 256 }, (_, i) => i) },
  ]),
);
const safetensors = safetensorsOf(stored);
const numbers: Record<string, number[]> = {};

const { type, columns, rows, activations } = LARGE;
const weights = quantizeSync(type, vectors((rows * columns) / 3));

const input: WasmInput = {
  large: bitsOf(matmulSync(type, weights, columns, vectors(columns), { activations })),
  url: "/golden.gguf",
  facts: Object.fromEntries(Array.from(file.tensors, ([name, tensor]) => [name, factsOf(tensor)])),
  metadata: textOf(file.metadata),
  safetensors: { url: "/checkpoint/", numbers },
};

before(async () => {
  const model = await openSafetensors(new Blob([safetensors]));
  for (const [name, tensor] of model.tensors) numbers[name] = bitsOf(await tensor.dequantize());
  model.close();
});

const answer: Handler = (request, response) => {
  const served = { "/golden.gguf": golden, "/checkpoint/model.safetensors": safetensors }[request.url ?? ""];
  if (served === undefined) response.writeHead(404).end();
  else if (request.headers.range !== undefined) rangesOf(served, { etag: '"1"' })(request, response);
  else response.end(served);
};

const ERRORS: Record<keyof WasmResult["errors"], RegExp> = {
  magic: /^GgufError ERR_GGUF_MAGIC/,
  argument: /^TypeError ERR_INVALID_ARG_TYPE/,
  blob: /^TypeError ERR_INVALID_ARG_TYPE/,
  empty: /^GgufError ERR_GGUF_/,
  truncated: /^GgufError ERR_GGUF_TRUNCATED: blob: /,
  aborted: /^Error undefined: enough$/,
  missing: /^GgufError ERR_GGUF_OPEN: .*no such file on the server/,
  closed: /^GgufError ERR_GGUF_CLOSED/,
  type: /^GgufError ERR_GGUF_UNSUPPORTED_TYPE/,
  safetensors: /^GgufError ERR_GGUF_INVALID: .*no safetensors file/,
};

function check(result: () => WasmResult, threads = 1): void {
  test(`threads: ${threads}`, () => assert.equal(result().threads, threads));
  test("the kernels are those of the module", () => {
    assert.equal(result().isa, "wasm");
    assert.deepEqual(result().types, Object.keys(ggmlTypes));
  });
  test("numbers, rows, statistics, products and metadata are the same, however the file is opened", () => {
    const { parse } = result().compared;
    assert.deepEqual(result().compared, { parse, openBlob: parse, openRemote: parse });
    assert.equal(parse!.compared, file.tensors.size);
    assert.deepEqual(result().differences, []);
  });
  test("models of safetensors have the same numbers, from a server and from a disk", () => {
    const { length } = Object.keys(numbers);
    assert.deepEqual(result().safetensors, [length, length]);
  });
  test("errors have their classes, codes and texts", () => {
    for (const [name, expected] of Object.entries(ERRORS)) assert.match(result().errors[name]!, expected);
  });
}

describe("gguf-native/wasm in Node", needsModule, () => {
  let result: WasmResult;
  before(async () => {
    const { url } = await serve(answer);
    const { runChecks } = await import("../support/wasm-page.js");
    result = await runChecks({
      ...input,
      url: new URL("/golden.gguf", url).href,
      safetensors: { numbers, url: new URL("/checkpoint/", url).href },
    });
  });
  check(() => result);
});

describe("where no WebAssembly may be compiled", needsModule, () => {
  // A realm that is like Cloudflare Workers, and like pages whose content security policy lacks 'wasm-unsafe-eval'.
  const realm = createContext(
    { atob, crypto, TextDecoder, TextEncoder, URL },
    { codeGeneration: { strings: true, wasm: false } },
  );
  const path = join(projectRoot, "dist", "wasm", "index.cjs");
  const module = { exports: {} };
  const names = ["module", "exports"];
  compileFunction(readFileSync(path, "utf8"), names, { parsingContext: realm })(module, module.exports);
  const { dequantizeSync, useModule } = module.exports as typeof import("gguf-native/wasm");
  const decode = () => dequantizeSync("F32", new Uint8Array(4)).length;

  test("an error says what to do", () => {
    const expected = {
      code: "ERR_GGUF_OPEN",
      message: /wasm-unsafe-eval.*gguf-native\/kernels\.wasm.*useModule/,
    };
    assert.throws(decode, expected);
    assert.throws(decode, expected);
  });
  test("other modules are refused", () => {
    assert.throws(() => useModule({}), { code: "ERR_INVALID_ARG_TYPE" });
    const empty = new Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
    assert.throws(() => useModule(empty), { code: "ERR_INVALID_ARG_VALUE" });
  });
  test("the compiled module is used", () => {
    useModule(compiledModule!);
    assert.equal(decode(), 1);
  });
});

describe("the bundle for browsers", needsModule, () => {
  if (needsModule.skip) return;
  const { metafile, outputFiles, warnings } = bundleForBrowser("wasm-page-main");

  test("is made without warnings, and has all it needs in it", () => {
    assert.deepEqual(warnings, []);
    const imports = Object.values(metafile.outputs).flatMap((output) => output.imports);
    assert.deepEqual(imports, []);
    assert.ok(Object.keys(metafile.inputs).includes("dist/wasm/index.mjs"));
  });

  for (const [what, headers, threads] of [
    ["", undefined, 1],
    [", isolated", ISOLATED, 1],
    [
      ", isolated, with workers",
      { ...ISOLATED, [CSP]: `${POLICY[CSP]}; worker-src blob:` },
      Math.min(2, availableParallelism()),
    ],
  ] as const) {
    describe(`in Chromium, under a content security policy${what}`, { skip: noChromium }, () => {
      let result: WasmResult & { edited: string };
      before(async () => {
        result = (await runInChromium(outputFiles[0]!.contents, input, answer, headers)) as typeof result;
      });
      check(() => result, threads);
      test("there is nothing of Node", () => assert.deepEqual(result.globals, []));
      test("a file that was edited is an error, not wrong numbers", () => {
        assert.match(result.edited, /^ERR_GGUF_CHANGED: model\.gguf: .*edited/);
      });
    });
  }
});

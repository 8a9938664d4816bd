/** Every public function with every kind of wrong argument: a TypeError in Node's wording, never anything else. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import * as gguf from "gguf-native";
import {
  dequantize,
  dequantizeSync,
  GgufError,
  GgufFile,
  GgufMetadata,
  GgufTensor,
  GgufWriter,
  matmul,
  matmulSync,
  mergeModel,
  open,
  openRemote,
  openSync,
  parse,
  quantizeModel,
  quantizeSync,
  RemoteGgufFile,
  RemoteGgufTensor,
  SafetensorsFile,
  SafetensorsTensor,
  setMetadata,
  splitModel,
} from "gguf-native";
import { Embedder } from "gguf-native/embeddings";
import * as reference from "gguf-native/reference";
import { Tokenizer } from "gguf-native/tokenizer";
import { str, writeGguf } from "../support/gguf-writer";
import { goldenPath } from "../support/golden";
import { projectRoot } from "../support/paths";

const ANY: unknown[] = [
  ...[undefined, null, true, 0, -1, 1.5, Number.NaN, 5n, "text", Symbol("s"), () => 1, {}, [], new Date()],
  ...[new Map(), new ArrayBuffer(8), new DataView(new ArrayBuffer(8)), new Uint8Array(8)],
  new Float64Array(2),
  ...[new Proxy({}, {}), Object.create(null), Promise.resolve(), new WeakMap(), /x/, new Error("e")],
];
const isString = (value: unknown) => typeof value === "string";
const isFunction = (value: unknown) => typeof value === "function";
const isTypedArray = (value: unknown) => ArrayBuffer.isView(value) && !(value instanceof DataView);
const isUint8Array = (value: unknown) => value instanceof Uint8Array;
const isBytes = (value: unknown) => isUint8Array(value) || value instanceof ArrayBuffer;
const isObject = (value: unknown) => typeof value === "object" && value !== null;
const isTrue = (value: unknown) => value === true;
const isNumber = (value: unknown) => typeof value === "number";
const isAbsent = (value: unknown) => value === undefined;

/** Throws a TypeError with ERR_INVALID_ARG_TYPE that names the argument. */
function refuses(name: string, run: (value: never) => unknown, accepts: (value: unknown) => boolean): void {
  test(`${name}`, async () => {
    for (const value of ANY) {
      if (accepts(value)) continue;
      const what = String(Object.prototype.toString.call(value));
      const message = /^The ("\S+" argument|property '\S+') must be .*\. Received /;
      const expected = { name: "TypeError", code: "ERR_INVALID_ARG_TYPE", message };
      await assert.rejects(async () => run(value as never), expected, what);
    }
  });
}

const content = writeGguf({
  metadata: [["general.architecture", str("x")]],
  tensors: [{ name: "t", type: 0, shape: [4, 2], bytes: new Uint8Array(32) }],
});
const file = parse(content);
const tensor = file.tensor("t");
const { metadata } = file;
const optional = (accepts: (value: unknown) => boolean) => (value: unknown) => isAbsent(value) || accepts(value);

describe("wrong types of", () => {
  refuses("openSync: path", (x) => openSync(x), isString);
  refuses("openSync: options", (x) => openSync(goldenPath, x), optional(isObject));
  refuses("openSync: access", (access) => openSync(goldenPath, { access }), optional(isString));
  refuses("openSync: splits", (splits) => openSync(goldenPath, { splits }), optional(isTrue));
  refuses("openSync: partial", (partial) => openSync(goldenPath, { partial }), optional(isTrue));
  refuses("open: path", (x) => open(x), isString);
  refuses("open: options", (x) => open(goldenPath, x), optional(isObject));
  refuses("open: signal", (signal) => open(goldenPath, { signal }), isAbsent);
  const old = { aborted: false, addEventListener() {}, removeEventListener() {} } as unknown as AbortSignal;
  test("open: an old signal, without throwIfAborted", () =>
    assert.rejects(open(goldenPath, { signal: old }), { code: "ERR_INVALID_ARG_TYPE" }));
  refuses("parse: bytes", (x) => parse(x), isBytes);
  refuses("parse: options", (x) => parse(content, x), optional(isObject));
  refuses("parse: partial", (partial) => parse(content, { partial }), optional(isTrue));
  refuses("file.tensor: name", (x) => file.tensor(x), isString);
  for (const method of [
    ...(["get", "has", "typeOf", "bytes", "string", "number", "boolean"] as const),
    ...(["strings", "numbers", "arch"] as const),
  ]) {
    refuses(`metadata.${method}: key`, (x) => metadata[method](x), isString);
  }
  refuses("metadata.forEach: callback", (x) => metadata.forEach(x), isFunction);
  refuses("tensor.dequantizeSync: options", (x) => tensor.dequantizeSync(x), optional(isObject));
  refuses("tensor.dequantize: options", (x) => tensor.dequantize(x), optional(isObject));
  refuses(
    "tensor.rowsSync: indexes",
    (x) => tensor.rowsSync(x),
    (x) => isObject(x) && "length" in (x as object),
  );
  refuses("tensor.rowsSync: options", (x) => tensor.rowsSync([0], x), optional(isObject));
  refuses("tensor.rowsSync: dtype", (dtype) => tensor.rowsSync([0], { dtype }), optional(isString));
  refuses("tensor.rowsSync: out", (out) => tensor.rowsSync([0], { out }), isAbsent);
  refuses("tensor.rows: options", (x) => tensor.rows([0], x), optional(isObject));
  refuses("tensor.rows: dtype", (dtype) => tensor.rows([0], { dtype }), optional(isString));
  refuses("tensor.rows: out", (out) => tensor.rows([0], { out }), isAbsent);
  for (const [name, run] of Object.entries({
    dequantizeSync,
    dequantize,
    reference: reference.dequantizeSync,
  })) {
    const blocks = new Uint8Array(4);
    refuses(`${name}: type`, (x) => run(x, blocks), isString);
    refuses(`${name}: blocks`, (x) => run("F32", x), isTypedArray);
    refuses(`${name}: options`, (x) => run("F32", blocks, x), optional(isObject));
    refuses(`${name}: dtype`, (dtype) => run("F32", blocks, { dtype }), optional(isString));
    refuses(`${name}: start`, (start) => run("F32", blocks, { start }), optional(isNumber));
    refuses(`${name}: end`, (end) => run("F32", blocks, { end }), optional(isNumber));
    refuses(`${name}: out`, (out) => run("F32", blocks, { out }), isAbsent);
  }
});

describe("values that are not valid", () => {
  const means = { name: "TypeError", code: "ERR_INVALID_ARG_VALUE" };
  test("access, dtype, a path with a null byte", () => {
    assert.throws(() => openSync(goldenPath, { access: "MMAP" as never }), means);
    assert.throws(() => tensor.dequantizeSync({ dtype: "f64" as never }), means);
    assert.throws(() => tensor.rowsSync([0], { dtype: "F16" as never }), means);
    assert.throws(() => openSync("a\0b"), means);
  });
  test("a URL that is not a file URL", () => {
    assert.throws(() => openSync(new URL("https://example.com/x.gguf")), { code: "ERR_INVALID_ARG_VALUE" });
  });
});

describe("methods on other objects", () => {
  const created = [GgufFile, GgufTensor].map(({ prototype }) => Object.create(prototype));
  const others = [undefined, null, {}, ...created, 5];
  for (const { name, prototype } of [GgufFile, GgufMetadata, GgufTensor]) {
    const members = Object.entries(Object.getOwnPropertyDescriptors(prototype));
    for (const symbol of Object.getOwnPropertySymbols(prototype)) {
      members.push([symbol.toString(), Object.getOwnPropertyDescriptor(prototype, symbol)!]);
    }
    for (const [member, { value, get }] of members) {
      const method = (get ?? value) as unknown;
      if (member === "constructor" || typeof method !== "function") continue;
      test(`${name}.${member}`, async () => {
        for (const other of others) {
          const run = async () => {
            const result = method.call(other, "x", {}, () => "");
            if (typeof result === "object" && result !== null && "next" in result) result.next();
            await result;
          };
          await assert.rejects(run, TypeError, String(other));
        }
      });
    }
  }
});

test("constructors are not public", () => {
  const remote = [RemoteGgufFile, RemoteGgufTensor, SafetensorsFile, SafetensorsTensor];
  const classes = [GgufFile, GgufMetadata, GgufTensor, ...remote];
  for (const type of [...classes, ...classes.map((type) => Object.getPrototypeOf(type))]) {
    if (type === Function.prototype) continue;
    const make = type as unknown as new (...args: unknown[]) => unknown;
    assert.throws(() => new make(), { name: "TypeError", code: "ERR_ILLEGAL_CONSTRUCTOR" });
    const forged = { handle: {}, info: {}, path: "x", closed: false };
    for (const args of [[Symbol("private"), {}, 0], [null], [forged], [[forged]], [[]], [{ file: forged }]]) {
      assert.throws(() => new make(...args), { name: "TypeError", code: "ERR_ILLEGAL_CONSTRUCTOR" });
    }
  }
});

test("options with getters that throw, and proxies, pass on what they throw", async () => {
  const error = new Error("from a getter");
  const get = () => {
    throw error;
  };
  const trap = new Proxy({}, { get });
  const is = (actual: unknown) => actual === error;
  assert.throws(() => openSync(goldenPath, trap), is);
  assert.throws(() => tensor.dequantizeSync(trap), is);
  await assert.rejects(tensor.dequantize(trap), is);
  assert.throws(() => dequantizeSync("F32", new Uint8Array(4), trap), is);
});

test("GgufError", () => {
  const error = new GgufError("ERR_GGUF_INVALID", "detail", { path: "p", offset: 7, cause: 1 });
  assert.ok(error instanceof Error);
  assert.equal(String(error), "GgufError: p: detail (at byte 7)");
  assert.deepEqual([error.code, error.path, error.offset, error.cause], ["ERR_GGUF_INVALID", "p", 7, 1]);
  const plain = new GgufError("ERR_GGUF_CLOSED", "detail");
  assert.ok(!("path" in plain) && !("offset" in plain) && !("cause" in plain));
});

test("the value that was received is shown as in Node's own messages", () => {
  const shown = (run: () => unknown) => {
    try {
      run();
    } catch (error) {
      return /Received .*$/s.exec((error as Error).message)?.[0];
    }
    return "nothing was thrown";
  };
  const strings = ["text", "it's", 'say "x"', ""];
  for (const value of [...ANY, -0, 1e300, -5n, class A {}, new (class {})(), ...strings]) {
    const own = shown(() => reference.dequantizeSync("Q4_0", value as never));
    if (isTypedArray(value)) continue;
    const expected = shown(() => Buffer.compare(value as never, Buffer.alloc(0)));
    assert.equal(own, expected);
  }
});

describe("an option of another name is a TypeError that lists the known ones", () => {
  const file = parse(writeGguf({ tensors: [{ name: "t", type: 0, shape: [4], bytes: new Uint8Array(16) }] }));
  const tensor = file.tensor("t");
  const four = new Uint8Array(16);
  const x = new Float32Array(4);
  const path = goldenPath;
  const cases: [name: string, wrong: string, meant: string | undefined, run: (options: never) => unknown][] = [
    ["openSync", "splitt", "splits", (options) => openSync(path, options)],
    ["open", "sginal", "signal", (options) => open(path, options)],
    ["parse", "partail", "partial", (options) => parse(four, options)],
    ["openRemote", "header", "headers", (options) => openRemote("http://127.0.0.1:9/x.gguf", options)],
    ["dequantizeSync", "outt", "out", (options) => dequantizeSync("F32", four, options)],
    ["dequantize", "onprogres", "onProgress", (options) => dequantize("F32", four, options)],
    ["reference.dequantizeSync", "dtpye", "dtype", (options) => reference.dequantizeSync("F32", four, options)],
    ["matmulSync", "thread", "threads", (options) => matmulSync("F32", four, 4, x, options)],
    ["matmul", "thread", "threads", (options) => matmul("F32", four, 4, x, options)],
    ["tensor.stats", "thraeds", "threads", (options) => tensor.stats(options)],
    ["matmulSync", "activation", "activations", (options) => matmulSync("F32", four, 4, x, options)],
    ["reference.matmulSync", "ouput", "out", (options) => reference.matmulSync("F32", four, 4, x, options)],
    ["quantizeSync", "ot", "out", (options) => quantizeSync("F32", x, options)],
    ["tensor.dequantizeSync", "strat", "start", (options) => tensor.dequantizeSync(options)],
    ["tensor.dequantize", "ends", "end", (options) => tensor.dequantize(options)],
    ["tensor.rowsSync", "start", undefined, (options) => tensor.rowsSync([0], options)],
    ["tensor.rows", "signl", "signal", (options) => tensor.rows([0], options)],
    ["tensor.read", "dtype", undefined, (options) => tensor.read(options)],
    ["tensor.matmulSync", "Threads", "threads", (options) => tensor.matmulSync(x, options)],
    ["tensor.matmul", "otu", "out", (options) => tensor.matmul(x, options)],
    ["new GgufWriter", "alignmnet", "alignment", (options) => new GgufWriter(options)],
    ["GgufWriter.from", "byteorder", "byteOrder", (options) => GgufWriter.from(file, options)],
    ["writer.write", "onWarnings", "onWarning", (options) => new GgufWriter().write(path, options)],
    ["setMetadata", "outptu", "output", (options) => setMetadata(path, {}, options)],
    ["splitModel", "maxTensor", "maxTensors", (options) => splitModel(path, "x", options)],
    [
      "quantizeModel",
      "tensor",
      "tensors",
      (options) => quantizeModel(path, "x", { type: "Q8_0", ...(options as object) }),
    ],
    ["mergeModel", "maxTensors", undefined, (options) => mergeModel(path, "x", options)],
  ];
  test("a synchronous function lists its own, and accepts those of the asynchronous one", () => {
    const own = (names: string, run: (wrong: never) => unknown) =>
      assert.throws(() => run({ dtyp: 1 } as never), { message: new RegExp(`The options are: ${names}$`) });
    own("dtype, start, end, out", (wrong) => tensor.dequantizeSync(wrong));
    own("dtype, start, end, out", (wrong) => dequantizeSync("F32", new Uint8Array(4), wrong));
    own("dtype, out", (wrong) => tensor.rowsSync([], wrong));
    own("start, end, bins, range, threads", (wrong) => tensor.statsSync(wrong));
    own("threads", (wrong) => tensor.compareSync(tensor, wrong));
    own("columns, start, end, out, .*, accumulate, threads", (wrong) => tensor.matmulSync(x, wrong));
    own("columns, importance, search, out, threads", (wrong) => quantizeSync("F32", x, wrong));
    tensor.dequantizeSync({ threads: 1 } as never);
  });
  for (const [name, wrong, meant, run] of cases) {
    test(`${name}: ${wrong}`, async () => {
      const hint = meant === undefined ? "\\." : `\\. Did you mean '${meant}'\\?`;
      const expected = {
        name: "TypeError",
        code: "ERR_INVALID_ARG_VALUE",
        message: new RegExp(`^There is no option '${wrong}'${hint} The options are: [a-zA-Z, ]+$`),
      };
      await assert.rejects(async () => run({ [wrong]: 1 } as never), expected);
      // Whatever its value is, nothing would come of it.
      await assert.rejects(async () => run({ [wrong]: undefined } as never), expected);
    });
  }

  test("what an options object inherits is not looked at", () => {
    const inherited = Object.create({ other: 1, end: 2 }) as { start?: number };
    inherited.start = 1;
    assert.equal(tensor.dequantizeSync(inherited).length, 1);
  });

  test("a type that is misspelt", () => {
    for (const run of [dequantizeSync, reference.dequantizeSync]) {
      assert.throws(() => run("q4_k" as never, four), {
        code: "ERR_GGUF_UNSUPPORTED_TYPE",
        message: "cannot dequantize the tensor type q4_k; did you mean Q4_K?",
      });
    }
  });

  test("a tensor that is not there", () => {
    const names = ["blk.0.attn_q.weight", "blk.0.attn_k.weight"];
    const model = parse(
      writeGguf({ tensors: names.map((name) => ({ name, type: 0, shape: [1], bytes: new Uint8Array(4) })) }),
    );
    assert.throws(() => model.tensor("blk.0.attn_q.wieght"), {
      code: "ERR_GGUF_TENSOR_NOT_FOUND",
      message: "no tensor is named 'blk.0.attn_q.wieght'. Did you mean 'blk.0.attn_q.weight'?",
    });
    assert.throws(() => model.tensor("lm_head"), { message: "no tensor is named 'lm_head'" });
  });
});

test("classes have the methods and properties that are declared, and no others", () => {
  const dist = join(projectRoot, "dist");
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".d.ts"));
  const declarations = files.map((name) => readFileSync(join(dist, name), "utf8")).join("\n");
  const seen = new Set<object>([Object.prototype, Error.prototype]);
  for (const value of [...Object.values(gguf), Tokenizer, Embedder, file.tensors.constructor]) {
    let prototype = typeof value === "function" ? (value.prototype as object | null | undefined) : undefined;
    for (; prototype && !seen.has(prototype); prototype = Object.getPrototypeOf(prototype) as object) {
      seen.add(prototype);
      const { name } = prototype.constructor;
      const names = Object.getOwnPropertyNames(prototype).filter((each) => each !== "constructor");
      if (names.length === 0) continue;
      const [, body] = new RegExp(`class ${name}\\b[^{]*\\{\\n(.*?)\\n\\}`, "s").exec(declarations) ?? [];
      assert.ok(body, name);
      const isDeclared = (each: string) => new RegExp(`^ {4}((abstract|get) )?${each}[(<]`, "m").test(body);
      // Of an error it is a property of Error.prototype, too.
      const others = names.filter((each) => !isDeclared(each) && !(name === "GgufError" && each === "name"));
      assert.deepEqual(others, [], name);
    }
  }
  assert.ok(seen.size > 10);
});

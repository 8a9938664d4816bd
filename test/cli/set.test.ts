/** `gguf-native set`: what becomes of the file, as the reader and another one see it. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { type GgufValueType, openSync } from "gguf-native";
import { at, EVIL, expectFailure, expectTidy, json, leftovers, output, run, writeModel } from "../support/cli";
import { arr, f64, str, type TypedValue, u64, writeGguf } from "../support/gguf-writer";
import { sampleModel } from "../support/sample-model";

writeFileSync(at("original.gguf"), sampleModel());
let digests: unknown;
before(async () => {
  digests = (await json("hash original.gguf")).files[0].tensors;
});

/** A copy to change; afterwards its tensors have to be what they were. */
async function changing(work: () => Promise<void>, name = "model.gguf"): Promise<void> {
  copyFileSync(at("original.gguf"), at("model.gguf"));
  await work();
  assert.deepEqual((await json(["hash", name])).files[0].tensors, digests);
  // It may warn of the keys.
  assert.match((await run(["verify", name])).stdout, /^ok /);
  assert.deepEqual(leftovers(), []);
}

const changes = (title: string, work: () => Promise<void>, name?: string) => test(title, () => changing(work, name));

/** The type and value of a key of a file. */
function found(key: string, name = "model.gguf") {
  using file = openSync(at(name));
  return [file.metadata.typeOf(key), file.metadata.get(key)];
}

describe("an existing key", () => {
  changes("keeps its type, and only the header is written where that fits", async () => {
    const { ino } = statSync(at("model.gguf"));
    assert.equal(
      await output("set model.gguf llama.context_length 4096"),
      "- llama.context_length  uint32  2048\n+ llama.context_length  uint32  4096\nchanged in place\n",
    );
    assert.equal(statSync(at("model.gguf")).ino, ino);
    assert.deepEqual(found("llama.context_length"), [{ type: "uint32" }, 4096]);
  });
  test("more than a page is changed in place only with --in-place", async () => {
    await changing(async () => {
      const { ino } = statSync(at("model.gguf"));
      const text = "y".repeat(5000);
      assert.match(await output("set model.gguf test.text", "x".repeat(5000)), /\nreplaced by a changed copy\n$/);
      assert.notEqual(statSync(at("model.gguf")).ino, ino);
      const copy = statSync(at("model.gguf")).ino;
      assert.match(await output("set model.gguf test.text", text, "--in-place"), /changed in place\n$/);
      assert.equal(statSync(at("model.gguf")).ino, copy);
      assert.deepEqual(found("test.text"), [{ type: "string" }, text]);
      assert.match(await output("recover model.gguf"), /^model\.gguf: no change was interrupted\n$/);
    });
    await expectFailure("set model.gguf a 1 --in-place -o b", 2, /either --in-place or --output/);
    await expectFailure("recover", 2, /missing FILE/);
  });
  changes("gets another type with --type", async () => {
    await output("set model.gguf llama.context_length --type uint64 18446744073709551615");
    assert.deepEqual(found("llama.context_length"), [{ type: "uint64" }, 2n ** 64n - 1n]);
  });
  test("with -o the file itself stays as it is", async () => {
    const before = readFileSync(at("original.gguf"));
    await changing(async () => {
      assert.match(await output("set model.gguf general.name New -o out.gguf"), /\nwritten to out\.gguf\n$/);
      assert.deepEqual(found("general.name", "out.gguf")[1], "New");
      assert.ok(readFileSync(at("model.gguf")).equals(before));
    }, "out.gguf");
  });
});

describe("a new key", () => {
  changes("with values of every kind", async () => {
    const values: [args: string[], type: string, value: unknown][] = [
      [["--type", "float32", "f", "-1.5e-3"], "float32", Math.fround(-1.5e-3)],
      [["b", "true", "--type", "bool"], "bool", true],
      [["s", "-", "--type", "string"], "string", "-"],
      [["e", "", "--type", "string"], "string", ""],
      [["a", "[1, 2]", "--type", "int32[]"], "int32[2]", Int32Array.of(1, 2)],
      [["l", '["a", "b"]', "--type", "string[]"], "string[2]", ["a", "b"]],
      [["__proto__", "x", "--type", "string"], "string", "x"],
      [["general.author", "7"], "string", "7"],
      [["--", "dash", "--text"], "string", "--text"],
      [["item", "- item"], "string", "- item"],
      [["rule", "--- x"], "string", "--- x"],
      [["nothing", "nan"], "float32", NaN],
      [["guessed", "[1, 9007199254740993]"], "uint64[2]", BigUint64Array.of(1n, 2n ** 53n + 1n)],
      [["nested", "[[9007199254740993]]"], "array[1]", [BigUint64Array.of(2n ** 53n + 1n)]],
    ];
    for (const [args, type, value] of values) {
      await output("set model.gguf", ...args);
      const key = args.find((arg) => /^[a-z_.]+$/i.test(arg) && !arg.includes("float"))!;
      const [is, read] = found(key) as [GgufValueType, unknown];
      const shown = is.type === "array" ? `${is.elementType}[${is.length}]` : is.type;
      assert.deepEqual([shown, read], [type, value]);
    }
  });
  changes("whose value looks like an option, after --", async () => {
    for (const value of ["--help", "-h", "--"]) {
      assert.match(await output("set model.gguf test.flags --", value), /changed copy\n$|in place\n$/);
      assert.deepEqual(found("test.flags"), [{ type: "string" }, value]);
    }
  });
  changes("whose name would move a terminal", async () => {
    const stdout = await output("set model.gguf", EVIL, EVIL, "--type", "string");
    expectTidy(stdout, Infinity);
    assert.deepEqual(found(EVIL)[1], EVIL);
  });
});

changes("--remove", async () => {
  const stdout = await output("set model.gguf general.name --remove");
  assert.match(stdout, /^- general\.name {2}string {2}Sample llama, random weights\n/);
  assert.deepEqual(found("general.name"), [undefined, undefined]);
  assert.equal(await output("set model.gguf general.name --remove"), "general.name is not in the file\n");
});
test("--remove of a key that is absent says so, and still writes OUT", async () => {
  const lines = "general.nam is not in the file. Did you mean 'general.name'?\nwritten to same.gguf\n";
  assert.equal(await output("set original.gguf --remove general.nam -o same.gguf"), lines);
  assert.ok(readFileSync(at("same.gguf")).equals(readFileSync(at("original.gguf"))));
});

describe("several keys at once", () => {
  changes("with values of several kinds, also negative ones", async () => {
    const stdout = await output("set model.gguf a -1 b", "- x", "general.name", "New");
    const added = "+ a  int32  -1\n+ b  string  - x\n";
    const changed = "- general.name  string  Sample llama, random weights\n+ general.name  string  New\n";
    assert.equal(stdout, `${added}${changed}replaced by a changed copy\n`);
    assert.deepEqual([found("a")[1], found("b")[1], found("general.name")[1]], [-1, "- x", "New"]);
  });
  test("removed by names and globs, before others are set", async () => {
    await changing(async () => {
      const args = ["--remove", "tokenizer.*", "--remove=general.name", "tokenizer.ggml.model", "gpt2"];
      await output("set model.gguf", ...args);
      using file = openSync(at("model.gguf"));
      const keys = [...file.metadata.keys()].filter((key) => /^tokenizer|name$/.test(key));
      assert.deepEqual(keys, ["tokenizer.ggml.model"]);
      assert.equal(file.metadata.string("tokenizer.ggml.model"), "gpt2");
    });
    await changing(async () => {
      await output("set model.gguf general.name tokenizer.* --remove");
      using file = openSync(at("model.gguf"));
      assert.ok(![...file.metadata.keys()].some((key) => /^tokenizer|name$/.test(key)));
    });
  });
  test("a key that is probably misspelt", async () => {
    const stdout = await output("set original.gguf llama.context_lenght 1 --dry-run");
    assert.match(stdout, /\nllama\.context_lenght is a new key\. Did you mean 'llama\.context_length'\?\n/);
  });
});

describe("--chat-template", () => {
  changes("the text of a file, whatever it looks like", async () => {
    for (const text of ["{{ messages }}\n\u202e漢字", "123", "[1, 2]", ""]) {
      writeFileSync(at("chat.jinja"), text);
      expectTidy(await output("set model.gguf --chat-template chat.jinja"), Infinity);
      assert.deepEqual(found("tokenizer.chat_template"), [{ type: "string" }, text]);
    }
  });
  test("a file that is no text, and none", async () => {
    writeFileSync(at("binary.jinja"), Uint8Array.of(0xff));
    const noText = /binary\.jinja: --chat-template takes text in UTF-8/;
    await expectFailure("set original.gguf --chat-template binary.jinja", 1, noText);
    await expectFailure("set original.gguf --chat-template none.jinja", 1, /none\.jinja/);
  });
});

describe("--from", () => {
  const setFrom = async (json: unknown, ...args: string[]) => {
    writeFileSync(at("from.json"), typeof json === "string" ? json : JSON.stringify(json));
    return run(["set", "model.gguf", "--from", "from.json", ...args]);
  };
  changes("plain values, exact ones, and null for removal", async () => {
    const text = `{ "general.name": null, "llama.context_length": 4096, "flag": true, "list": ["a", "b"],
      "big": 18446744073709551615, "none": null, "__proto__": "x",
      "typed": { "type": "uint64", "value": "18446744073709551615" },
      "floats": { "type": "array", "elementType": "float32", "value": ["NaN", "-0", 1.5] } }`;
    const { status, stdout, stderr } = await setFrom(text);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /\nnone is not in the file\n/);
    assert.deepEqual(found("general.name"), [undefined, undefined]);
    assert.deepEqual(found("llama.context_length"), [{ type: "uint32" }, 4096]);
    assert.deepEqual(found("flag")[1], true);
    assert.deepEqual(found("list")[1], ["a", "b"]);
    assert.deepEqual(found("big"), [{ type: "uint64" }, 2n ** 64n - 1n]);
    assert.deepEqual(found("typed"), [{ type: "uint64" }, 2n ** 64n - 1n]);
    assert.deepEqual(found("floats")[1], Float32Array.of(NaN, -0, 1.5));
    assert.deepEqual(found("__proto__")[1], "x");
  });
  test("everything that inspect --json prints, to the bit", async () => {
    const metadata: [string, TypedValue][] = [
      ["u64", u64(2n ** 64n - 1n)],
      ["f", f64(-0)],
      ["nan", f64(Number.NaN)],
      ["broken", str(Uint8Array.of(0xff, 0x41))],
      ["list", arr("string", ["ok", Uint8Array.of(0xfe)])],
      ["empty", arr("uint8", [])],
      [EVIL, str(EVIL)],
    ];
    writeFileSync(at("full.gguf"), writeGguf({ metadata }));
    writeFileSync(at("model.gguf"), writeGguf({ metadata: [] }));
    const { status, stderr } = await setFrom((await run("inspect --json full.gguf")).stdout);
    assert.deepEqual([status, stderr], [0, ""]);
    const { files } = await json("hash full.gguf model.gguf");
    assert.equal(files[0].metadata, files[1].metadata);
  });
  test("what is no object, no JSON, or does not fit", async () => {
    const failures: [json: unknown, status: 1 | 2, message: RegExp][] = [
      ["[1]", 1, /from\.json: --from takes an object in JSON, by key/],
      ["{", 1, /from\.json: not JSON: /],
      [{ "llama.block_count": "x" }, 2, /llama\.block_count/],
      [
        { x: { type: "uint8" } },
        1,
        /from\.json: metadata key 'x': must be a value, or an object with a type and a value/,
      ],
      [{ x: { type: "array", elementType: "uint8", value: 1 } }, 1, /an array must have an array as its value/],
      [{ x: { type: "array", elementType: "string", value: ["a"], bytes: { 7: "ff" } } }, 1, /has bytes for '7'/],
      [{ x: { type: "uint8", value: 256 } }, 2, /x/],
      [{ x: { type: "uint9", value: 1 } }, 1, /type/],
    ];
    copyFileSync(at("original.gguf"), at("model.gguf"));
    for (const [json, status, message] of failures) {
      const result = await setFrom(json);
      assert.deepEqual([result.status, result.stdout], [status, ""], result.stderr);
      assert.match(result.stderr, message);
    }
    assert.ok(readFileSync(at("model.gguf")).equals(readFileSync(at("original.gguf"))));
  });
});

describe("failure leaves the file as it was", () => {
  const before = readFileSync(at("original.gguf"));
  for (const [args, status, message] of [
    [
      ["llama.context_length", "many"],
      2,
      /'llama\.context_length': 'many' is not a value of type uint32 \(see gguf-native set --help\)/,
    ],
    [["general.name", "x", "llama.context_length", "many"], 2, /'many' is not a value of type uint32/],
    [["llama.context_length", "4294967296"], 2, /llama\.context_length/],
    [["x", "1e999"], 2, /'1e999' does not fit in a float64; infinity is 'inf'/],
    [["general.alignment", "64"], 1, /general\.alignment is 32 and cannot be changed/],
    [["general.alignment", "64", "--dry-run"], 1, /general\.alignment is 32 and cannot be changed/],
    [["", "x"], 2, /key/],
  ] as [string[], 1 | 2, RegExp][]) {
    test(args.join(" "), async () => {
      await expectFailure(["set", "original.gguf", ...args], status, message);
      assert.ok(readFileSync(at("original.gguf")).equals(before));
      assert.deepEqual(leftovers(), []);
    });
  }
  test("wrong usage", async () => {
    await expectFailure("set original.gguf", 2, /missing KEY/);
    await expectFailure("set original.gguf k", 2, /missing VALUE after 'k'/);
    await expectFailure("set x abc", 2, /missing VALUE after 'abc'/);
    await expectFailure("set original.gguf k v w", 2, /missing VALUE after 'w'/);
    await expectFailure("set original.gguf --remove", 2, /missing KEY/);
    await expectFailure("set original.gguf k --remove --type bool", 2, /--type is for VALUE/);
    await expectFailure("set original.gguf k 1 --type unit8", 2, /Did you mean 'uint8'\?/);
    for (const type of ["int7", "array", "array[]"]) {
      const message = /--type must be one of uint8, .*, or of an array such as int32\[\]; not /;
      await expectFailure(["set", "original.gguf", "k", "v", "--type", type], 2, message);
    }
    await expectFailure("set original.gguf k -item", 2, /Unknown option '-i'; .* goes last, after --/);
    assert.ok(readFileSync(at("original.gguf")).equals(before));
  });
  test("a missing file and a missing folder", async () => {
    await expectFailure("set none.gguf k v", 1, /none\.gguf/);
    await expectFailure("set original.gguf k v -o missing/out.gguf", 1, /missing\/out\.gguf/);
    assert.ok(!existsSync(at("missing")));
  });
});

test("arrays are shown with their type and length", async () => {
  writeModel("array.gguf", { metadata: [["list", arr("string", ["a"])]] });
  const { stdout } = await run(["set", "array.gguf", "list", '["b", "c"]']);
  assert.match(stdout, /^- list {2}string\[1\] {2}\["a"\]\n\+ list {2}string\[2\] {2}\["b", "c"\]\n/);
});

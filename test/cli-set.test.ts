/** `gguf-native set`: what becomes of the file, as the reader and another one see it. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { openSync } from "gguf-native";
import { at, EVIL, expectFailure, expectTidy, json, leftovers, output, run } from "./support/cli";
import { arr, str, writeGguf } from "./support/gguf-writer";
import { sampleModel } from "./support/sample-model";

writeFileSync(at("original.gguf"), sampleModel());
const original = openSync(at("original.gguf"));
let digests: unknown;
before(async () => {
  digests = (await json(["hash", "original.gguf"])).files[0].tensors;
});

/** A copy to change; afterwards its tensors have to be what they were. */
async function changing(work: () => Promise<void>, name = "model.gguf"): Promise<void> {
  copyFileSync(at("original.gguf"), at("model.gguf"));
  await work();
  assert.deepEqual((await json(["hash", name])).files[0].tensors, digests);
  assert.match(await output("verify", name), /^ok /);
  assert.deepEqual(leftovers(), []);
}

/** The type and value of a key of a file. */
function found(key: string, name = "model.gguf") {
  using file = openSync(at(name));
  return [file.metadata.typeOf(key), file.metadata.get(key)];
}

describe("an existing key", () => {
  test("keeps its type, and only the header is written where that fits", async () => {
    await changing(async () => {
      const { ino } = statSync(at("model.gguf"));
      assert.equal(
        await output("set", "model.gguf", "llama.context_length", "4096"),
        "- llama.context_length  uint32  2048\n+ llama.context_length  uint32  4096\nchanged in place\n",
      );
      assert.equal(statSync(at("model.gguf")).ino, ino);
      assert.deepEqual(found("llama.context_length"), [{ type: "uint32" }, 4096]);
    });
  });
  test("more than a page is changed in place only with --in-place", async () => {
    await changing(async () => {
      const { ino } = statSync(at("model.gguf"));
      const text = "y".repeat(5000);
      assert.match(await output("set", "model.gguf", "test.text", "x".repeat(5000)), /changed copy\n$/);
      assert.notEqual(statSync(at("model.gguf")).ino, ino);
      const copy = statSync(at("model.gguf")).ino;
      assert.match(await output("set", "model.gguf", "test.text", text, "--in-place"), /changed in place\n$/);
      assert.equal(statSync(at("model.gguf")).ino, copy);
      assert.deepEqual(found("test.text"), [{ type: "string" }, text]);
      assert.match(await output("recover", "model.gguf"), /^model\.gguf: no change was interrupted\n$/);
    });
    await expectFailure(
      ["set", "model.gguf", "a", "1", "--in-place", "-o", "b"],
      2,
      /either --in-place or --output/,
    );
    await expectFailure(["recover"], 2, /missing FILE/);
  });
  test("a longer value: a changed copy takes the place of the file", async () => {
    await changing(async () => {
      const { ino } = statSync(at("model.gguf"));
      const name = "x".repeat(5000);
      const stdout = await output("set", "model.gguf", "general.name", name);
      assert.match(stdout, /\nreplaced by a changed copy\n$/);
      assert.notEqual(statSync(at("model.gguf")).ino, ino);
      assert.deepEqual(found("general.name"), [{ type: "string" }, name]);
      using file = openSync(at("model.gguf"));
      assert.deepEqual([...file.metadata.keys()], [...original.metadata.keys()]);
    });
  });
  test("gets another type with --type", async () => {
    await changing(async () => {
      await output("set", "model.gguf", "llama.context_length", "--type", "uint64", "18446744073709551615");
      assert.deepEqual(found("llama.context_length"), [{ type: "uint64" }, 2n ** 64n - 1n]);
    });
  });
  test("with -o the file itself stays as it is", async () => {
    const before = readFileSync(at("original.gguf"));
    await changing(async () => {
      assert.match(
        await output("set", "model.gguf", "general.name", "New", "-o", "out.gguf"),
        /\nwritten to out\.gguf\n$/,
      );
      assert.deepEqual(found("general.name", "out.gguf")[1], "New");
      assert.ok(readFileSync(at("model.gguf")).equals(before));
    }, "out.gguf");
  });
});

describe("a new key", () => {
  test("with values of every kind", async () => {
    await changing(async () => {
      const values: [args: string[], type: object, value: unknown][] = [
        [["n", "-1", "--type", "int8"], { type: "int8" }, -1],
        [["--type", "float32", "f", "-1.5e-3"], { type: "float32" }, Math.fround(-1.5e-3)],
        [["g", "-inf", "--type", "float64"], { type: "float64" }, -Infinity],
        [["b", "true", "--type", "bool"], { type: "bool" }, true],
        [["s", "-", "--type", "string"], { type: "string" }, "-"],
        [["e", "", "--type", "string"], { type: "string" }, ""],
        [
          ["a", "[1, 2]", "--type", "int32[]"],
          { type: "array", elementType: "int32", length: 2 },
          Int32Array.of(1, 2),
        ],
        [
          ["l", '["a", "b"]', "--type", "string[]"],
          { type: "array", elementType: "string", length: 2 },
          ["a", "b"],
        ],
        [["__proto__", "x", "--type", "string"], { type: "string" }, "x"],
        [["general.author", "7"], { type: "string" }, "7"],
        [["--", "dash", "--text"], { type: "string" }, "--text"],
        [["item", "- item"], { type: "string" }, "- item"],
        [["rule", "--- x"], { type: "string" }, "--- x"],
        [["infinite", "-inf"], { type: "float32" }, -Infinity],
        [["nothing", "nan"], { type: "float32" }, NaN],
        [
          ["huge", "[9007199254740993, 18446744073709551615]", "--type", "uint64[]"],
          { type: "array", elementType: "uint64", length: 2 },
          BigUint64Array.of(2n ** 53n + 1n, 2n ** 64n - 1n),
        ],
        [
          ["guessed", "[1, 9007199254740993]"],
          { type: "array", elementType: "uint64", length: 2 },
          BigUint64Array.of(1n, 2n ** 53n + 1n),
        ],
        [
          ["nested", "[[9007199254740993]]"],
          { type: "array", elementType: "array", length: 1 },
          [BigUint64Array.of(2n ** 53n + 1n)],
        ],
      ];
      for (const [args, type, value] of values) {
        await output("set", "model.gguf", ...args);
        const key = args.find((arg) => /^[a-z_.]+$/i.test(arg) && !arg.includes("float"))!;
        assert.deepEqual(found(key), [type, value]);
      }
    });
  });
  test("whose name would move a terminal", async () => {
    await changing(async () => {
      const stdout = await output("set", "model.gguf", EVIL, EVIL, "--type", "string");
      expectTidy(stdout, Infinity);
      assert.deepEqual(found(EVIL)[1], EVIL);
    });
  });
});

test("--remove", async () => {
  await changing(async () => {
    const stdout = await output("set", "model.gguf", "general.name", "--remove");
    assert.match(stdout, /^- general\.name {2}string {2}Sample llama, random weights\n/);
    assert.deepEqual(found("general.name"), [undefined, undefined]);
    assert.equal(
      await output("set", "model.gguf", "general.name", "--remove"),
      "general.name is not in the file\n",
    );
  });
});

test("another reader agrees", async () => {
  const { gguf } = await import("@huggingface/gguf");
  copyFileSync(at("original.gguf"), at("model.gguf"));
  await output(
    "set",
    "model.gguf",
    "general.name",
    "A much longer name than there was before, so that all moves",
  );
  await output("set", "model.gguf", "llama.rope.freq_base", "1e6", "--type", "float32");
  const { metadata, tensorInfos } = await gguf(at("model.gguf"), { allowLocalFile: true });
  const values = metadata as Record<string, unknown>;
  assert.equal(values["general.name"], "A much longer name than there was before, so that all moves");
  assert.equal(values["llama.rope.freq_base"], 1e6);
  assert.equal(tensorInfos.length, original.tensors.size);
});

describe("failure leaves the file as it was", () => {
  const before = readFileSync(at("original.gguf"));
  for (const [args, message] of [
    [["llama.context_length", "many"], /'many' is not a value of type uint32/],
    [["llama.context_length", "4294967296"], /llama\.context_length/],
    [["x", "1e999"], /'1e999' does not fit in a float64; infinity is 'inf'/],
    [["general.alignment", "64"], /general\.alignment is 32 and cannot be changed/],
    [["", "x"], /key/],
  ] as [string[], RegExp][]) {
    test(args.join(" "), async () => {
      await expectFailure(["set", "original.gguf", ...args], 1, message);
      assert.ok(readFileSync(at("original.gguf")).equals(before));
      assert.deepEqual(leftovers(), []);
    });
  }
  test("wrong usage", async () => {
    await expectFailure(["set", "original.gguf"], 2, /missing KEY/);
    await expectFailure(["set", "original.gguf", "k"], 2, /missing VALUE/);
    await expectFailure(["set", "original.gguf", "k", "v", "w"], 2, /unexpected argument 'w'/);
    await expectFailure(["set", "original.gguf", "k", "v", "--remove"], 2, /unexpected argument 'v'/);
    await expectFailure(
      ["set", "original.gguf", "k", "--remove", "--type", "bool"],
      2,
      /either --remove or --type/,
    );
    for (const type of ["int7", "array", "array[]"]) {
      const message = /--type must be one of uint8, .*, or of an array such as int32\[\]; not /;
      await expectFailure(["set", "original.gguf", "k", "v", "--type", type], 2, message);
    }
    await expectFailure(
      ["set", "original.gguf", "k", "-item"],
      2,
      /Unknown option '-i'; .* goes last, after --/,
    );
    assert.ok(readFileSync(at("original.gguf")).equals(before));
  });
  test("a missing file and a missing folder", async () => {
    await expectFailure(["set", "none.gguf", "k", "v"], 1, /none\.gguf/);
    await expectFailure(
      ["set", "original.gguf", "k", "v", "-o", "missing/out.gguf"],
      1,
      /missing\/out\.gguf/,
    );
    assert.ok(!existsSync(at("missing")));
  });
});

test("arrays are shown with their type and length", async () => {
  writeFileSync(
    at("array.gguf"),
    writeGguf({
      metadata: [
        ["list", arr("string", ["a"])],
        ["x", str("y")],
      ],
    }),
  );
  const { stdout } = await run(["set", "array.gguf", "list", '["b", "c"]']);
  assert.match(stdout, /^- list {2}string\[1\] {2}\["a"\]\n\+ list {2}string\[2\] {2}\["b", "c"\]\n/);
});

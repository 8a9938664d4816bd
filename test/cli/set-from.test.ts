/** `gguf-native set --from`: JSON is read as it is written, to the last digit and key, and errors say where. */
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import fc from "fast-check";
import { openSync } from "gguf-native";
import { parseExactJson } from "#dist/writer/exact-json";
import { at, run } from "../support/cli";
import { sampleModel } from "../support/sample-model";

writeFileSync(at("original.gguf"), sampleModel());

const setFrom = async (json: string) => {
  copyFileSync(at("original.gguf"), at("model.gguf"));
  writeFileSync(at("from.json"), json);
  return run("set model.gguf --from from.json");
};

/** JSON text, and what it says: made together, so that nothing has to read it. Numbers are the text that they are. */
interface Said {
  text: string;
  value: unknown;
}

const space = fc.constantFrom("", "", " ", "\n", "\t\r\n ");
const numberText = fc.oneof(
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (Object.is(x, -0) ? "-0" : String(x))),
  fc.constantFrom("0", "-0", "1e999", "-1.50E+3", "0.10e-07", "9007199254740993"),
);
const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "10", "2", "__proto__", "constructor", 'a"b\\', "1e5", "-1", "{", "]", "\u2028"),
);
/** The same text as JSON in either of two ways. */
const quoted = (text: string, escapesAll: boolean) =>
  escapesAll
    ? `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("")}"`
    : JSON.stringify(text);
const { said } = fc.letrec<{ said: Said }>((tie) => ({
  said: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    numberText.map((text) => ({ text, value: { number: text } })),
    fc.tuple(anyText, fc.boolean()).map(([value, all]) => ({ text: quoted(value, all), value })),
    fc.constantFrom(true, false, null).map((value) => ({ text: String(value), value })),
    fc.tuple(fc.array(fc.tuple(space, tie("said"), space), { maxLength: 5 }), space).map(([items, rest]) => ({
      text: `[${items.map(([a, item, b]) => a + item.text + b).join(",") || rest}]`,
      value: items.map(([, item]) => item.value),
    })),
    fc
      .uniqueArray(fc.tuple(anyText, fc.boolean(), space, tie("said")), {
        maxLength: 6,
        selector: ([key]) => key,
      })
      .map((members) => ({
        text: `{${members.map(([key, all, a, item]) => `${a}${quoted(key, all)}${a}:${a}${item.text}${a}`).join(",")}}`,
        value: new Map(members.map(([key, , , item]) => [key, item.value])),
      })),
  ),
}));

/** Numbers as the text that the parser hands over. */
const read = (text: string) => parseExactJson(text, (number) => ({ number }) as never);

describe("JSON as it is written", () => {
  test("is what was written, numbers by their own text, keys in their order", () => {
    fc.assert(
      fc.property(said, space, ({ text, value }, around) => {
        const found = read(around + text + around);
        assert.deepStrictEqual(found, value);
        // deepStrictEqual takes maps for sets of entries.
        const keys = (each: unknown): unknown =>
          each instanceof Map
            ? Array.from(each, ([key, inner]) => [key, keys(inner)])
            : Array.isArray(each)
              ? each.map(keys)
              : each;
        assert.deepStrictEqual(keys(found), keys(value));
      }),
      { numRuns: 500 },
    );
  });
  test("is JSON exactly where JSON.parse says so", () => {
    const piece = fc.constantFrom(...'[]{},:"\\/-+.eE01u \n\t\u0000\ufeff\u00a0tfn*', "true", "null", "//");
    const edited = fc
      .tuple(said, fc.array(fc.tuple(fc.nat(), fc.nat(2), piece), { maxLength: 3 }))
      .map(([{ text }, edits]) =>
        edits.reduce((all, [where, length, put]) => {
          const i = where % (all.length + 1);
          return all.slice(0, i) + put + all.slice(i + length);
        }, text),
      );
    fc.assert(
      fc.property(edited, (text) => {
        let expected: string | undefined;
        try {
          JSON.parse(text);
        } catch {
          expected = "not JSON";
        }
        try {
          read(text);
          assert.equal(expected, undefined, text);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          const { message } = error as Error;
          assert.match(message, /^(not JSON: )?line \d+, column \d+: /);
          // An edit can make two keys equal.
          if (expected === undefined) assert.match(message, /is there twice$/, text);
          else assert.match(message, /not JSON|is there twice/, text);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("set --from", () => {
  test("whole numbers go to their own keys, whatever the keys look like", async () => {
    const key = fc.constantFrom("10", "2", "1", "__proto__", "test.b", "test.a", "llama.block_count", "0x1");
    const number = fc.bigInt({ min: 0n, max: 2n ** 32n - 1n });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(key, number), { minLength: 1, selector: ([name]) => name }),
        async (entries) => {
          const members = entries.map(([name, value]) => `"${name}": {"type":"uint32","value":${value}}`);
          const { status, stderr } = await setFrom(`{${members.join(",")}}`);
          assert.equal(status, 0, stderr);
          using file = openSync(at("model.gguf"));
          for (const [name, value] of entries) assert.equal(file.metadata.get(name), Number(value));
          const added = entries.map(([name]) => name).filter((name) => name !== "llama.block_count");
          assert.deepEqual(Array.from(file.metadata.keys()).slice(-added.length || Infinity), added);
        },
      ),
      { numRuns: 40 },
    );
  });

  const typed = (type: string, rest: string) => `{"test.x": {"type":"${type}", ${rest}}}`;
  const list = '"elementType":"string", "value":["a", "b"]';
  const failures: [name: string, json: string, message: RegExp][] = [
    [
      "a key that is there twice",
      '{"q":1,"q":2,"llama.block_count":32,\n"llama.context_length":4096}',
      /from\.json: line 1, column 8: the key 'q' is there twice/,
    ],
    ["a key twice inside", '{"metadata":{"a":1,\n "b":{"type":"x","type":"y"}}}', /line 2, column 18: the key 'type'/],
    ["too large a number", '{"a":1,\n "b":1e999}', /from\.json: line 2, column 6: '1e999' does not fit in a float64/],
    ["too many digits", `{"b":${"9".repeat(2000)}}`, /line 1, column 6: '9+\.\.\.' has 2000 digits/],
    ["deep nesting", `{"a":${"[".repeat(5000)}${"]".repeat(5000)}}`, /line 1, column 105: more than 100 levels/],
    ["deeper nesting", "[".repeat(200_000), /line 1, column 101: more than 100 levels of nesting/],
    ["what is no JSON", '{"a": 1,\n  oops}', /from\.json: not JSON: line 2, column 3: /],
    ["nothing", "", /not JSON: line 1, column 1: a value is missing here/],
    ["no hexadecimal", typed("string", '"value":"x", "bytes":"fz"'), /'test\.x': bytes has no hex.* at character 2/],
    ["half a byte", typed("string", '"value":"x", "bytes":"fff"'), /'test\.x': bytes has 3 hexadecimal digits/],
    ["spaces in bytes", typed("string", '"value":"x", "bytes":"ff 41"'), /bytes has no .* at character 3/],
    ["bytes that are no text", typed("string", '"value":"x", "bytes":5'), /bytes must be text in hexadecimal/],
    ["bytes of an array", typed("array", `${list}, "bytes":{"1":"0g"}`), /bytes\['1'\] has no .* at character 2/],
    ["bytes at an index that is none", typed("array", `${list}, "bytes":{"":"00"}`), /has bytes for ''/],
    ["bytes of all of an array", typed("array", `${list}, "bytes":"00"`), /must be an object, by index/],
  ];
  for (const [name, json, message] of failures) {
    test(`${name}: the error says where, and nothing changes`, async () => {
      const { status, stdout, stderr } = await setFrom(json);
      assert.deepEqual([status, stdout], [1, ""], stderr);
      assert.match(stderr, message);
      assert.ok(readFileSync(at("model.gguf")).equals(readFileSync(at("original.gguf"))));
    });
  }
});

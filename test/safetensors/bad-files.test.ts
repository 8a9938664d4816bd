/** Every rule of safetensors, broken; and files that are nearly good. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { GgufError, openSafetensors } from "gguf-native";
import { temporaryFolder } from "../support/paths";
import { badSafetensors, safetensors, safetensorsOf } from "../support/safetensors-files";

const folder = temporaryFolder();
const path = join(folder, "bad.safetensors");

for (const { name, code, message, offset, bytes } of badSafetensors) {
  test(name, async () => {
    const is = (where: string) => (error: unknown) => {
      assert.ok(error instanceof GgufError, String(error));
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      assert.equal(error.offset, offset, error.message);
      assert.equal(error.path, where);
      assert.ok(!/\p{Cc}/u.test(error.message), error.message);
      return true;
    };
    writeFileSync(path, bytes);
    await assert.rejects(openSafetensors(path), is(path));
    await assert.rejects(openSafetensors(new Blob([bytes as Uint8Array<ArrayBuffer>])), is("blob"));
  });
}

const GOOD = safetensorsOf(
  {
    "a.weight": { dtype: "F16", shape: [2, 3], bytes: new Uint8Array(12) },
    b: { dtype: "U8", shape: [], bytes: new Uint8Array(1) },
    c: { dtype: "BOOL", shape: [0, 7], bytes: new Uint8Array(0) },
  },
  { format: "pt" },
);

test("every prefix of a file is refused, at a byte that is in it or at its end", async () => {
  for (let length = 0; length < GOOD.length; length++) {
    await assert.rejects(
      openSafetensors(new Blob([GOOD.subarray(0, length)])),
      (error) => error instanceof GgufError && error.code === "ERR_GGUF_TRUNCATED" && error.offset! <= length,
      `${length} bytes`,
    );
  }
  (await openSafetensors(new Blob([GOOD]))).close();
});

test("a name with control characters is escaped in messages", async () => {
  const file = safetensors({ "evil\n\u001b[31m": { dtype: "F32", shape: [2], data_offsets: [0, 4] } }, 4);
  await assert.rejects(openSafetensors(new Blob([file])), (error: Error) => {
    return /tensor 'evil\\u000a\\u001b\[31m'/.test(error.message) && !/\p{Cc}/u.test(error.message);
  });
});

test("files with changed bytes open, or are refused with an error of the package", async () => {
  const change = fc.record({
    at: fc.nat(GOOD.length - 1),
    byte: fc.oneof(fc.nat(255), fc.constantFrom(...'{}[]",:0123456789\\ '.split("").map((c) => c.charCodeAt(0)))),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      const bytes = Buffer.from(GOOD);
      for (const { at, byte } of changes) bytes[at] = byte;
      let model: Awaited<ReturnType<typeof openSafetensors>>;
      try {
        model = await openSafetensors(new Blob([bytes]));
      } catch (error) {
        assert.ok(error instanceof GgufError, String(error));
        assert.match(error.code, /INVALID|TRUNCATED|UNSUPPORTED_TYPE/);
        return;
      }
      for (const tensor of model.tensors.values()) {
        assert.equal((await tensor.dequantize()).length, tensor.elementCount);
        assert.ok(tensor.offset + tensor.elementCount <= bytes.length);
      }
      model.close();
    }),
    { numRuns: 2000 },
  );
});

test("what the header may be is what this test says", async () => {
  // An independent reader: JSON.parse, and the rules in a few lines.
  const entry = fc.record({
    dtype: fc.constantFrom("F32", "F16", "U8", "F64", "X"),
    shape: fc.array(fc.constantFrom(1, 2, 3), { maxLength: 3 }),
    slack: fc.constantFrom(0, 0, 0, 0, 0, 1, -1),
  });
  const sizes: Record<string, number> = { F32: 4, F16: 2, U8: 1, F64: 8, X: 1 };
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 4 }), fc.constantFrom(0, 0, 0, 1, -1), async (entries, extra) => {
      const header: Record<string, unknown> = {};
      let end = 0;
      let isGood = extra === 0;
      for (const [i, { dtype, shape, slack }] of entries.entries()) {
        const bytes = shape.reduce((product, dim) => product * dim, sizes[dtype]!);
        const begin = end + slack;
        if (begin < 0) return;
        header[`t${i}`] = { dtype, shape, data_offsets: [begin, begin + bytes] };
        end = begin + bytes;
        isGood &&= slack === 0 && dtype !== "X";
      }
      const bytes = safetensors(header, Math.max(0, end + extra));
      if (end + extra < 0) return;
      const opened = openSafetensors(new Blob([bytes]));
      if (isGood) (await opened).close();
      else await assert.rejects(opened, GgufError);
    }),
    { numRuns: 1000 },
  );
});

test("a header of spaces, names or numbers takes no time out of proportion", async () => {
  for (const text of [
    `{"a":${" ".repeat(1 << 22)}`,
    `{"${"\\\\".repeat(1 << 21)}`,
    `{"__metadata__":{"k":"${"x".repeat(1 << 22)}"},"a":{"shape":[${"1".repeat(1 << 20)}]}}`,
    `{"a":{"shape":${"[".repeat(1 << 20)}`,
  ]) {
    await assert.rejects(openSafetensors(new Blob([safetensors(text)])), GgufError);
  }
});

test("more keys than any file has are refused", async () => {
  const names = (count: number) => `{${Array.from({ length: count }, (_, i) => `"${i}":""`).join(",")}}`;
  const opened = (text: string) => openSafetensors(new Blob([safetensors(text)]));
  await assert.rejects(opened(`{"__metadata__":${names(2 ** 20 + 1)}}`), /has more than 1048576 keys/);
  await assert.rejects(opened(`{"__metadata__":{"a":${names(2)}}}`), /must be '"' here/);
  const place = join(folder, "names");
  mkdirSync(place);
  writeFileSync(join(place, "model.safetensors.index.json"), `{"x":${names(2 ** 20 + 17)}}`);
  await assert.rejects(openSafetensors(place), /more than 1048592 names/);
  const { metadata } = await opened(`{"__metadata__":${names(1000)}}`);
  assert.equal(metadata.size, 1000);
  assert.equal(metadata.get("safetensors.999"), "");
});

test("an index that breaks a rule", async () => {
  const place = join(folder, "sharded");
  mkdirSync(place);
  writeFileSync(join(place, "one.safetensors"), GOOD);
  const index = join(place, "model.safetensors.index.json");
  const map = { "a.weight": "one.safetensors", b: "one.safetensors", c: "one.safetensors" };
  const refused = async (text: string, message: RegExp, code = "ERR_GGUF_INVALID"): Promise<void> => {
    writeFileSync(index, text);
    await assert.rejects(openSafetensors(place), { code, message });
  };
  const withMap = (weights: object): string => JSON.stringify({ metadata: { total_size: 1 }, weight_map: weights });
  await refused("", /must be '\{'/);
  await refused("\xff", /must be '\{'/);
  await refused(withMap({}), /no weight_map/);
  await refused(withMap({ a: 1 }), /must be '"'/);
  await refused(`{"x":${"[".repeat(100)}`, /64 levels/);
  await refused(`{"weight_map":{"b":"one.safetensors","b":"one.safetensors"}}`, /twice/);
  for (const file of ["../one.safetensors", "/etc/passwd", "", ".", "a\\b", "x?y"]) {
    await refused(withMap({ ...map, b: file }), /no name of a file beside it/);
  }
  await refused(withMap({ ...map, b: "two.safetensors" }), /two\.safetensors/, "ERR_GGUF_OPEN");
  await refused(withMap({ b: "one.safetensors" }), /'a\.weight': it has this tensor, which the index does not name/);
  await refused(withMap({ ...map, d: "one.safetensors" }), /'d': it is not in one\.safetensors/);
  await refused(withMap({ ...map, "\n": "one.safetensors" }), /'\\u000a': it is not in/);
  await refused(withMap({ ...map, b: "\u009b" }), /'\\u009b' is no name/);
  await refused(withMap({ ...map, b: "/".repeat(1e6) }), /'\/{200}' is no name/);
  writeFileSync(index, withMap(map));
  const model = await openSafetensors(place);
  assert.deepEqual([...model.tensors.keys()], ["a.weight", "b", "c"]);
  model.close();
});

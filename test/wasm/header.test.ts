/** Headers and metadata in WebAssembly: the addon's tables, values and verdicts. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parseHeader } from "#dist/backend/wasm/header";
import { inModule } from "#dist/backend/wasm/module";
import { badFiles } from "../support/bad-files";
import type { ByteOrder } from "../support/byte-writer";
import { ByteWriter } from "../support/byte-writer";
import { arr, bool, str, u32, writeGguf } from "../support/gguf-writer";
import { Random } from "../support/random";
import { outcomeOf, rawAddon } from "../support/raw-addon";
import { sampleModel } from "../support/sample-model";
import { needsShared, sharedPath, tinyLlama, vocabularies } from "../support/shared-data";
import { needsModule } from "../support/wasm";

/** Everything that is known of a file, or the error: of the module and of the addon. */
function assertSame(bytes: Uint8Array, partial = false, what = ""): void {
  const module = outcomeOf(() => parseHeader(bytes, partial));
  const addon = outcomeOf(() => rawAddon.parse(bytes, partial));
  if ("error" in addon || "error" in module) {
    assert.deepEqual(module, addon, what);
    return;
  }
  const header = module.value!;
  const file = addon.value;
  assert.deepEqual(header.info(), rawAddon.info(file), what);
  const { keyCount, tensorCount } = header.info();
  const keys = header.keys();
  assert.deepEqual(keys, rawAddon.keys(file, 0, keyCount), what);
  assert.deepEqual(header.tensors(), rawAddon.tensors(file, 0, tensorCount), what);
  const found = header.keys(keyCount >> 1, keyCount >> 2);
  assert.deepEqual(found, rawAddon.keys(file, keyCount >> 1, keyCount >> 2));
  const middle = [tensorCount >> 1, tensorCount >> 2] as const;
  assert.deepEqual(header.tensors(...middle), rawAddon.tensors(file, ...middle), what);
  assert.deepEqual(header.replacedKeys(), rawAddon.replacedKeys(file), what);
  assert.deepEqual(header.replacedTensors(), rawAddon.replacedTensors(file), what);
  const asked = (names: string[]) =>
    [...names.slice(0, 100), "absent"].filter((name) => !/[\ufffd\ud800-\udfff]/u.test(name));
  for (const name of asked(keys.names)) assert.equal(header.findKey(name), rawAddon.findKey(file, name), name);
  for (const name of asked(header.tensors().names)) {
    assert.equal(header.findTensor(name), rawAddon.findTensor(file, name), name);
  }
  for (const [i, name] of keys.names.entries()) {
    assert.deepEqual(header.keyBytes(i), rawAddon.keyBytes(file, i), name);
    const value = bytes.subarray(keys.begins[i], keys.ends[i]);
    const sameAs = (theirs: () => unknown, ours: () => unknown) =>
      assert.deepEqual(outcomeOf(ours), outcomeOf(theirs), name);
    sameAs(
      () => rawAddon.value(file, i),
      () => header.value(i, value),
    );
    sameAs(
      () => rawAddon.valueBytes(file, i),
      () => header.valueBytes(i, value),
    );
  }
  for (const [i, name] of header.tensors().names.entries()) {
    assert.deepEqual(header.tensorNameBytes(i), rawAddon.tensorNameBytes(file, i), name);
  }
}

describe("headers in WebAssembly", needsModule, () => {
  describe("are what the addon says", () => {
    for (const name of [tinyLlama, ...vocabularies]) {
      test(name, needsShared(name), () => assertSame(readFileSync(sharedPath(name))));
    }

    test("text that is not UTF-8, not ASCII, or longer than what is decoded at once", () => {
      const texts = [
        ...["", "a", "é", "▁token", "😀", "\ufeff", "\ufeffa", "\0", "x".repeat(70_000), "ü".repeat(40_000)],
        ...[[0xff], [0xc3], [0xa9], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98], [0x61, 0xe2, 0x82]],
      ].map((text) => (typeof text === "string" ? Buffer.from(text) : Uint8Array.from(text)));
      const random = new Random(7);
      const many = Array.from({ length: 20_000 }, () => texts[random.below(texts.length)]!);
      const short = many.filter((text) => text.length < 1000);
      for (const byteOrder of ["little", "big"] as ByteOrder[]) {
        assertSame(
          writeGguf({
            byteOrder,
            metadata: [
              ...texts.map((text, i) => [`text ${i}`, str(text)] as const),
              [Uint8Array.of(0xff, 0x61), arr("string", short)],
              ["some long ones", arr("string", many.slice(0, 300))],
              ["nested", arr("array", [arr("string", texts), arr("string", []), arr("string", texts)])],
            ],
            tensors: short
              .slice(0, 1000)
              .map((text, i) => ({ name: Buffer.concat([Buffer.from(`${i}`), text]), type: 0, shape: [0] }))
              .map((tensor) => ({ ...tensor, bytes: new Uint8Array(0) })),
          }),
        );
      }
    });

    test("200,000 tensors, and a vocabulary of 256,000", () => {
      const w = new ByteWriter();
      w.bytes(Buffer.from("GGUF")).u32(3).u64(200_000).u64(1);
      w.string("tokenizer.ggml.tokens").u32(9).u32(8).u64(256_000);
      for (let i = 0; i < 256_000; i++) w.string(`▁${i}`);
      for (let i = 0; i < 200_000; i++) w.string(`blk.${i}.weight`).u32(1).u64(0).u32(0).u64(0);
      w.align(32);
      assertSame(w.done());
    });
  });

  describe("have the addon's verdicts", () => {
    test("every prefix of a file, whole files and the beginnings of longer ones", () => {
      const bytes = writeGguf({
        metadata: [
          ["one", u32(1)],
          ["list", arr("string", ["a", "bc"])],
          ["deep", arr("array", [arr("uint16", [1, 2])])],
        ],
        tensors: [{ name: "t", type: 2, shape: [32, 2], bytes: new Uint8Array(36) }],
      });
      for (let length = 0; length <= bytes.length; length++) {
        const prefix = bytes.subarray(0, length);
        assertSame(prefix, false, `${length} bytes`);
        assertSame(prefix, true, `${length} bytes, partial`);
        const known = outcomeOf(() => parseHeader(prefix, false, bytes.length)?.info());
        const file = outcomeOf(() => rawAddon.parse(prefix, false, bytes.length));
        if ("error" in file) assert.deepEqual(known, file);
        else assert.deepEqual(known, { value: file.value && rawAddon.info(file.value) });
      }
    });

    test("values that have changed since the header was parsed", () => {
      const bytes = writeGguf({
        metadata: [
          ["text", str("hello")],
          ["flag", bool(true)],
          ["texts", arr("string", ["a", "bc", ""])],
          ["deep", arr("array", [arr("bool", [true]), arr("string", ["x"])])],
        ],
      });
      const original = bytes.slice();
      const header = parseHeader(bytes, false)!;
      const file = rawAddon.parse(bytes, false);
      const { begins, ends } = header.keys();
      let errors = 0;
      for (const [i, begin] of begins.entries()) {
        for (let at = begin; at < ends[i]!; at++) {
          for (const byte of [0, 1, 2, 7, 255]) {
            bytes.set(original);
            bytes[at] = byte;
            const value = bytes.slice(begin, ends[i]);
            const addon = outcomeOf(() => rawAddon.value(file, i));
            if ("error" in addon) errors++;
            const found = outcomeOf(() => header.value(i, value));
            assert.deepEqual(found, addon);
            assert.deepEqual(
              outcomeOf(() => header.valueBytes(i, value)),
              outcomeOf(() => rawAddon.valueBytes(file, i)),
            );
          }
        }
      }
      assert.ok(errors > 100, `${errors} errors`);
      const { error } = outcomeOf(() => header.value(0, new Uint8Array(3))) as { error: { code: string } };
      assert.equal(error.code, "ERR_GGUF_TRUNCATED");
    });
  });

  describe("take bounded memory", () => {
    test("which does not grow from parse to parse", () => {
      const bytes = sampleModel();
      const sizeAfter = (n: number): number => {
        for (let i = 0; i < n; i++) {
          const header = parseHeader(bytes, false)!;
          const { begins, ends, names } = header.keys();
          const key = i % names.length;
          header.value(key, bytes.subarray(begins[key], ends[key]));
          outcomeOf(() => parseHeader(badFiles[i % badFiles.length]!.bytes, false));
        }
        return inModule(({ byteLength }) => byteLength);
      };
      // Whatever it takes, it has after every file has been parsed once.
      const once = sizeAfter(badFiles.length);
      assert.equal(sizeAfter(1000), once);
    });

    test("and where it ends, at any step, that is an error, and the next file works", () => {
      const names = Array.from({ length: 20_000 }, (_, i) => `blk.${i}.weight`);
      const bytes = writeGguf({
        metadata: [["texts", arr("string", names)]],
        tensors: names.map((name) => ({ name, type: 0, shape: [0], bytes: new Uint8Array(0) })),
      });
      /** How many tables come out with so many free pages of 64 KiB. */
      const columnsWith = (pages: number): number =>
        inModule((module) => {
          const { exports } = module;
          const place = module.put(bytes);
          const free = Array.from({ length: pages }, () => module.allocate(2 ** 16));
          // All of the four GiB but these. Memory that nobody writes to is not really taken.
          for (let size = 2 ** 28; size >= 16; size /= 2) while (exports.allocate(size) !== 0);
          for (const at of free) exports.free(at);
          return exports.reply_columns(exports.parse(place, bytes.length, bytes.length, 0));
        });
      for (const pages of [5, 50]) {
        assert.deepEqual(
          outcomeOf(() => columnsWith(pages)),
          { error: { code: "ERR_GGUF_OUT_OF_MEMORY", detail: "out of memory" } },
          `${pages} pages`,
        );
      }
      assert.equal(columnsWith(1000), 19);
      assertSame(bytes);
    });

    test("a header that is too long for it is an error, and the next one works", () => {
      const length = 2 ** 30;
      const bytes = new Uint8Array(length + 2 ** 20);
      const w = new ByteWriter().bytes(Buffer.from("GGUF")).u32(3).u64(0).u64(1).string("key").u32(8).u64(length);
      bytes.set(w.done());
      const actual = outcomeOf(() => parseHeader(bytes, false));
      assert.deepEqual(actual, { error: { code: "ERR_GGUF_OUT_OF_MEMORY", detail: "out of memory" } });
      assert.equal(parseHeader(bytes.subarray(0, 2 ** 18), false, bytes.length), undefined);
      assertSame(sampleModel());
    });
  });
});

/** Numbers as the command line prints them, and how wide text is. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { projectRoot } from "../support/paths";

// Not part of the package's interface: loaded from where it was built.
const { humanBytes, humanCount } = require(join(projectRoot, "dist", "describe", "text.js")) as {
  humanBytes(bytes: number): string;
  humanCount(count: number): string;
};

const { clusters, textWidth, truncate } = require(join(projectRoot, "dist", "cli", "output", "text-width.js")) as {
  clusters(text: string): Iterable<string>;
  textWidth(text: string): number;
  truncate(text: string, width: number): string;
};

test("characters that are taken to be of one column are", async () => {
  const { default: measured } = await import("string-width");
  for (let code = 0x20; code < 0x3000; code++) {
    const char = String.fromCharCode(code);
    assert.equal(textWidth(char), measured(char), `U+${code.toString(16)}`);
  }
});

describe("text", () => {
  const texts: [what: string, text: string, width: number][] = [
    ["nothing", "", 0],
    ["plain", "blk.0.attn_q.weight", 19],
    ["Latin letters", "blök", 4],
    ["a letter and its accent", "e\u0301te\u0301", 3],
    ["many accents", `a${"\u0300".repeat(100)}`, 1],
    ["ideographs", "漢字", 4],
    ["ideographs beyond 16 bits", "𠀀𠀁", 4],
    ["kana", "カタカナ", 8],
    ["kana of half the width", "ｶﾀｶﾅ", 4],
    ["Latin letters of full width", "ＡＢ", 4],
    ["Hangul", "한글", 4],
    ["Hangul in parts", "\u1112\u1161\u11ab", 2],
    ["an emoji", "🚀", 2],
    ["emoji among the older signs", "✅⭐⌚", 6],
    ["signs that are no emoji by themselves", "✈☎", 2],
    ["a sign that is made an emoji", "❤\ufe0f", 2],
    ["a colour of skin", "👍🏽", 2],
    ["a family", "👨\u200d👩\u200d👧\u200d👦", 2],
    ["an astronaut", "👩🏽\u200d🚀", 2],
    ["flags", "🇩🇪🇫🇷", 4],
    ["a key", "1\ufe0f\u20e3", 2],
    ["what is invisible", "a\u200bb\u2060", 2],
    ["a mixture", "e\u0301漢🇩🇪x👍🏽", 8],
  ];
  for (const [what, text, width] of texts) {
    test(`${what}: its columns, and those of what it is cut to`, () => {
      assert.equal(textWidth(text), width);
      assert.equal([...clusters(text)].join(""), text);
      assert.equal(truncate(text, width), text);
      for (let room = 1; room < width; room++) {
        const cut = truncate(text, room);
        assert.ok(textWidth(cut) <= room, `${room}: ${cut}`);
        assert.ok(cut.endsWith("…") && text.startsWith(cut.slice(0, -1)), cut);
        // Nothing is cut in two, and no more is cut off than one that takes two columns.
        assert.ok(textWidth(cut) >= room - 1, `${room}: ${cut}`);
        const parts = [...clusters(text)];
        assert.ok(
          parts.some((_, i) => parts.slice(0, i).join("") === cut.slice(0, -1)),
          cut,
        );
      }
    });
  }

  test("lone halves of pairs, and a million marks, are no error", () => {
    assert.equal(textWidth("a\ud800b"), 2);
    assert.equal(textWidth(`a${"\u0300".repeat(1_000_000)}`), 1);
  });
});

test("counts and sizes have three digits, also where rounding makes a fourth", () => {
  for (const [count, expected] of [
    [0, "0"],
    [999, "999"],
    [1000, "1.00 K"],
    [99_900, "99.9 K"],
    [999_499, "999 K"],
    [999_500, "1.00 M"],
    [999_999, "1.00 M"],
    [999_499_999, "999 M"],
    [999_500_000, "1.00 B"],
    [7_241_732_096, "7.24 B"],
  ] as const) {
    assert.equal(humanCount(count), expected);
  }
  const KiB = 1024;
  const MiB = 1024 * KiB;
  for (const [bytes, expected] of [
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [1023 * KiB, "1023 KiB"],
    [1023.5 * KiB - 1, "1023 KiB"],
    [1023.5 * KiB, "1.00 MiB"],
    [MiB - 1, "1.00 MiB"],
    [1023.5 * MiB, "1.00 GiB"],
    [NaN, "?"],
  ] as const) {
    assert.equal(humanBytes(bytes), expected);
  }
});

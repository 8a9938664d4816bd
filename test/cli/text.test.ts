/** Numbers as the command line prints them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { projectRoot } from "../support/paths";

// Not part of the package's interface: loaded from where it was built.
const { humanBytes, humanCount } = require(join(projectRoot, "dist", "describe", "text.js")) as {
  humanBytes(bytes: number): string;
  humanCount(count: number): string;
};

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

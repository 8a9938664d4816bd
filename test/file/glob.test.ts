/** Globs for names, checked by hand and against regular expressions. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { projectRoot } from "../support/paths";

// Not part of the package's interface: loaded from where it was built.
const { globMatcher, globRenamer, isGlob } = require(join(projectRoot, "dist", "base", "glob.js")) as {
  globRenamer(glob: string, to: string): (name: string) => string | undefined;
  globMatcher(glob: string): (name: string) => boolean;
  isGlob(text: string): boolean;
};

const CASES: readonly (readonly [glob: string, names: string[], others: string[]])[] = [
  ["blk.0.*", ["blk.0.attn_q.weight", "blk.0."], ["blk.10.attn_q.weight", "xblk.0.a", "blk00.a"]],
  ["*", ["", ".", "a.b/c", ".hidden"], []],
  ["?", ["a", "漢", "😀"], ["", "ab"]],
  ["*.attn_[qkv].weight", ["blk.3.attn_q.weight", "x.attn_v.weight"], ["x.attn_o.weight", "x.attn_qk.weight"]],
  ["[!a-c]x", ["dx", "-x"], ["ax", "cx", "x"]],
  ["[^a-c]x", ["dx"], ["bx"]],
  ["[]]", ["]"], ["["]],
  ["[!]]", ["a", "!"], ["]"]],
  ["[a-]", ["a", "-"], ["b"]],
  ["[abc", ["[abc"], ["a"]],
  ["a\\*b", ["a*b"], ["axb", "a\\*b"]],
  ["\\[a]", ["[a]"], ["a"]],
  ["a\\", ["a\\"], ["a"]],
  ["(a|b).{2}$", ["(a|b).{2}$"], ["a.."]],
  ["**a**", ["a", "bab"], ["b"]],
  ["", [""], ["a"]],
  ["line\n*", ["line\nbreak"], ["line break"]],
];

for (const [glob, names, others] of CASES) {
  test(`'${glob}'`, () => {
    for (const name of names) assert.ok(globMatcher(glob)(name), name);
    for (const name of others) assert.ok(!globMatcher(glob)(name), name);
  });
}

/** What a character of a glob is in a regular expression. */
const SOURCES: Record<string, string> = { "*": "[^]*", "?": "[^]", ".": "\\." };

test("agrees with regular expressions", () => {
  const char = fc.constantFrom("a", "b", ".", "*", "?");
  fc.assert(
    fc.property(
      fc.array(char, { maxLength: 12 }),
      fc.array(fc.constantFrom("a", "b", "."), { maxLength: 12 }),
      (glob, name) => {
        const source = glob.map((c) => SOURCES[c] ?? c).join("");
        const found = globMatcher(glob.join(""))(name.join(""));
        assert.equal(found, new RegExp(`^${source}$`).test(name.join("")));
      },
    ),
    { numRuns: 2000 },
  );
});
test("new names have what the wildcards matched", () => {
  for (const [glob, to, name, expected] of [
    ["a.*", "b.*", "a.c.d", "b.c.d"],
    ["*.*", "*-*", "a.b.c", "a-b.c"],
    ["*.attn_?.*", "*.self_attn.*_proj.*", "blk.7.attn_q.weight", "blk.7.self_attn.q_proj.weight"],
    ["**a", "<*|*>", "xa", "<|x>"],
    ["*", "*", "", ""],
    ["a*", "*", "b", undefined],
    ["[qk].[!x]*", "*\\*\\\\*?*", "q.漢😀", "q*\\漢?😀"],
    ["a", "b[c]", "a", "b[c]"],
    ["*b", "*", "bbb", "bb"],
  ] as const)
    assert.equal(globRenamer(glob, to)(name), expected, `${glob} ${to}`);
  for (const [glob, to] of [
    ["*", "a"],
    ["a", "*"],
    ["*.?", "*"],
  ] as const)
    assert.throws(() => globRenamer(glob, to), /wildcards/);
});
test("a new name that is the glob itself is the old name", () => {
  const char = fc.constantFrom("a", "b", ".", "*");
  fc.assert(
    fc.property(
      fc.array(char, { maxLength: 12 }),
      fc.array(fc.constantFrom("a", "b", "."), { maxLength: 12 }),
      (parts, chars) => {
        const [glob, name] = [parts.join(""), chars.join("")];
        assert.equal(globRenamer(glob, glob)(name), globMatcher(glob)(name) ? name : undefined);
      },
    ),
    { numRuns: 2000 },
  );
});
test("many stars do not make it slow", () => {
  const begin = performance.now();
  assert.ok(!globMatcher(`${"*a".repeat(30)}b`)("a".repeat(20_000)));
  assert.ok(performance.now() - begin < 5_000);
});
test("nor do many brackets", () => {
  const begin = performance.now();
  for (const glob of ["[".repeat(200_000), `${"[".repeat(200_000)}]`, `]${"[".repeat(200_000)}`]) globMatcher(glob);
  assert.ok(performance.now() - begin < 5_000);
});
test("what could be a glob", () => {
  for (const text of ["*", "a?", "[a]", "\\a"]) assert.ok(isGlob(text));
  for (const text of ["blk.0.attn_q.weight", "a]", "", "漢"]) assert.ok(!isGlob(text));
});

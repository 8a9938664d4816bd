/** `gguf-native completion`: the scripts, in the shells that they are for. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { before, describe, test } from "node:test";
import { runSync, succeeds } from "../support/child";
import { at, bin, expectFailure, floats, folder, output, writeModel } from "../support/cli";
import { str, u32 } from "../support/gguf-writer";

const HOSTILE = ["$(touch pwned)", "`touch pwned`", "a b", "-o", "x;touch pwned", "'q'", "\x1b[31m"];
writeModel("model.gguf", {
  metadata: [
    ["general.name", str("x")],
    ["general.file_type", u32(1)],
    ...HOSTILE.map((key) => [key, u32(1)] as [string, ReturnType<typeof u32>]),
  ],
  tensors: ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "output.weight", ...HOSTILE].map((name) => floats(name, [1])),
});

/** The program under its name, for shells. */
const path = join(folder, "bin");
mkdirSync(path);
writeFileSync(join(path, "gguf-native"), `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`);
chmodSync(join(path, "gguf-native"), 0o755);
const env = { ...process.env, PATH: `${path}${delimiter}${process.env.PATH}`, HOME: folder, TERM: "dumb" };

function shell(program: string, args: string[], input = "") {
  return runSync(program, args, { cwd: folder, env, input });
}

const needs = (program: string) => ({
  skip: !succeeds(program, ["-c", "true"]) && `${program} is not installed`,
});

const scripts: Record<string, string> = {};
before(async () => {
  for (const name of ["bash", "zsh", "fish"]) {
    scripts[name] = await output("completion", name);
    writeFileSync(at(`completion.${name}`), scripts[name]);
  }
});

/** What is completed to, by what is typed. The words that begin with what was typed last, in any order. */
const CASES: readonly [typed: string, expected: string[]][] = [
  ["ins", ["inspect"]],
  ["help rec", ["recover"]],
  ["inspect --js", ["--json"]],
  ["inspect --me", ["--metadata", "--memory"]],
  ["dequantize model.gguf --dtype b", ["bf16"]],
  ["quantize a.gguf b.gguf --search b", ["best"]],
  ["embed m.gguf --activations f", ["f32"]],
  ["set model.gguf --ch", ["--chat-template"]],
  ["show model.gguf blk.0.attn_", ["blk.0.attn_q.weight", "blk.0.attn_k.weight"]],
  ["stats model.gguf out", ["output.weight"]],
  ["set model.gguf general.", ["general.name", "general.file_type"]],
  ["completion z", ["zsh"]],
];

test("every option is described, in every script", () => {
  for (const script of Object.values(scripts)) {
    assert.match(script, /--?l? ?chat-template/);
    assert.match(script, /no-splits/);
  }
  // Descriptions are taken from the help: an option that it does not describe would have none.
  assert.doesNotMatch(scripts.fish!, / -d ''/);
  assert.doesNotMatch(scripts.zsh!, /\[\]/);
  assert.doesNotMatch(scripts.fish!, /-a [a-z]+ -d ''/);
});

describe("bash", needs("bash"), () => {
  for (const [typed, expected] of CASES) {
    test(typed, () => {
      const words = ["gguf-native", ...typed.split(" ")];
      const { stdout, stderr } = shell("bash", [
        "--norc",
        "-c",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
        'source completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gguf_native; printf "%s\\n" "${COMPREPLY[@]}"',
        "bash",
        ...words,
      ]);
      assert.equal(stderr, "");
      assert.deepEqual(stdout.trim().split("\n").sort(), [...expected].sort());
    });
  }
  test("files are left to the shell", () => {
    const { stdout } = shell("bash", [
      "--norc",
      "-c",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
      'source completion.bash; COMP_WORDS=(gguf-native inspect mod); COMP_CWORD=2; _gguf_native; echo "${#COMPREPLY[@]}"',
    ]);
    assert.equal(stdout, "0\n");
  });
});

describe("fish", needs("fish"), () => {
  for (const [typed, expected] of CASES) {
    test(typed, () => {
      const command = `source completion.fish; complete -C ${JSON.stringify(`gguf-native ${typed}`)}`;
      const { stdout } = shell("fish", ["--no-config", "-c", command]);
      const found = stdout
        .trim()
        .split("\n")
        .map((line) => line.split("\t")[0]!);
      assert.deepEqual(found.sort(), [...expected].sort());
    });
  }
});

describe("zsh", needs("zsh"), () => {
  for (const [typed, expected] of CASES) {
    test(typed, () => {
      // A terminal inside zsh, in which the tab key is pressed; what compadd is given is written down.
      const script = `
        zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z 'PROMPT=; autoload -U compinit; compinit -u -D; source completion.zsh'
        zpty -w z 'compadd() { local -a found; builtin compadd -O found "$@"; print -rl -- $found >>found.txt; builtin compadd "$@" }'
        zpty -w z 'rm -f found.txt; zstyle ":completion:*" verbose no; bindkey "^I" complete-word; echo rea""dy'
        zpty -r -m z line '*ready*'
        zpty -w -n z $'gguf-native ${typed}\\t'
        zpty -w -n z $'\\C-a#\\n'
        zpty -w z 'echo do""ne'
        zpty -r -m z line '*done*'
        zpty -d z
        cat found.txt
      `;
      const { stdout, stderr } = shell("zsh", ["-f", "-c", script]);
      const found = new Set(stdout.trim().split("\n"));
      assert.deepEqual([...found].filter((word) => word !== "").sort(), [...expected].sort(), stderr);
    });
  }
});

test("names that a shell would not take as they are are left out", async () => {
  const tensors = "blk.0.attn_q.weight\nblk.0.attn_k.weight\noutput.weight\n";
  assert.equal(await output("completion tensors model.gguf"), tensors);
  assert.equal(await output("completion keys model.gguf"), "general.name\ngeneral.file_type\n");
});
test("wrong usage", async () => {
  await expectFailure("completion", 2, /missing SHELL/);
  await expectFailure("completion bsh", 2, /SHELL must be bash, zsh or fish, not 'bsh'\. Did you mean 'bash'\?/);
  await expectFailure("completion tensors", 2, /missing FILE/);
  await expectFailure("completion bash x", 2, /unexpected argument 'x'/);
  await expectFailure("completion keys none.gguf", 1, /none\.gguf/);
});

/**
 * Every block of code in the README and in docs/ runs as it is printed: JavaScript as a module, shell commands in bash,
 * all blocks of a page in one folder, in order. There is a model.gguf, there are files of the other names that pages use,
 * and a network that has nothing but this model.
 * What a block says that it prints, it prints.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, test } from "node:test";
import { type DocBlock, docBlocks, promisedLines } from "../support/doc-blocks";
import { projectRoot, temporaryFolder } from "../support/paths";
import { safetensorsOf } from "../support/safetensors-files";
import { sampleModel } from "../support/sample-model";
import { needsModule } from "../support/wasm";

const PAGES = [
  "README.md",
  ...readdirSync(join(projectRoot, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

const noBash = spawnSync("bash", ["-c", "exit 0"]).status === 0 ? false : "there is no bash";
/** Programs that blocks use, and that a machine may not have. */
const missing = ["jq"].filter((program) => spawnSync(program, ["--version"]).status !== 0);
const root = temporaryFolder();
const sample = sampleModel();

/** The files of a playground. */
const FILES: Record<string, Uint8Array | string> = {
  "model.gguf": sample,
  "model-F16.gguf": sample,
  "model-Q4_K_M.gguf": sample,
  "a.gguf": sample,
  "b.gguf": sample,
  "model.safetensors": safetensorsOf({
    "model.norm.weight": { dtype: "F32", shape: [2], bytes: new Uint8Array(8) },
  }),
  "prompt.txt": "Once upon a time\n",
  "chat.jinja": "{% for message in messages %}{{ message.content }}{% endfor %}\n",
  "changes.json": '{ "general.name": "Mine", "general.url": null }\n',
  "app.ts": 'import { openSync } from "gguf-native";\nconsole.log(openSync("model.gguf").tensors.size);\n',
};

/** A folder with the files, the package, its command as npx would run it, and the project's own tools, such as esbuild. */
function playground(page: string): { folder: string; env: NodeJS.ProcessEnv } {
  const folder = join(root, page.replaceAll("/", "-"));
  const bin = join(folder, "bin");
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  mkdirSync(bin);
  symlinkSync(projectRoot, join(folder, "node_modules", "gguf-native"), "junction");
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, name), content);
  const program = `exec '${process.execPath}' '${join(projectRoot, "dist", "cli", "main.js")}' "$@"\n`;
  const commands = {
    "gguf-native": program,
    npx: `[ "$1" = gguf-native ] || { echo "npx: only gguf-native is here, not $1" >&2; exit 1; }\nshift\n${program}`,
  };
  for (const [name, script] of Object.entries(commands)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}`);
    chmodSync(join(bin, name), 0o755);
  }
  const env = {
    ...process.env,
    PATH: [bin, join(projectRoot, "node_modules", ".bin"), process.env.PATH].join(delimiter),
    NODE_OPTIONS: `--require "${join(__dirname, "..", "support", "local-fetch.js")}"`,
  };
  delete (env as NodeJS.ProcessEnv).NODE_TEST_CONTEXT;
  return { folder, env };
}

/** How to run the blocks of a language: a program, and the file that it runs. */
const RUNNERS: Record<string, { command: string[]; ending: string; skip?: string | false }> = {
  js: { command: [process.execPath], ending: "mjs" },
  sh: { command: ["bash", "-euo", "pipefail"], ending: "sh", skip: noBash },
};
/** Languages of blocks that are not programs: "" is output, or a picture. */
const NOT_PROGRAMS = new Set(["", "cpp", "json", "yaml", "dockerfile"]);

/** Why a block cannot be run; false if it can. */
function skipReason({ language, code, notRun }: DocBlock): string | false {
  const program = missing.find((name) => new RegExp(`\\b${name}\\b`).test(code));
  return (
    notRun ??
    (RUNNERS[language]?.skip ||
      (program !== undefined && `there is no ${program}`) ||
      (code.includes("gguf-native/wasm") && needsModule.skip))
  );
}

function runBlock(
  { language, code, line }: DocBlock,
  { folder, env }: ReturnType<typeof playground>,
): string {
  const { command, ending } = RUNNERS[language]!;
  const file = join(folder, `line-${line}.${ending}`);
  writeFileSync(file, code);
  const [program, ...args] = [...command, file];
  const { status, signal, stdout, stderr } = spawnSync(program!, args, {
    cwd: folder,
    env,
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.equal(status ?? signal, 0, `${stdout}${stderr}`);
  return stdout;
}

for (const page of PAGES) {
  describe(page, () => {
    const blocks = docBlocks(readFileSync(join(projectRoot, page), "utf8"));
    const place = playground(page);
    for (const block of blocks.filter(({ language }) => !NOT_PROGRAMS.has(language))) {
      const { language, code, line } = block;
      test(`line ${line}, ${language}`, { skip: skipReason(block) }, () => {
        assert.ok(language in RUNNERS, `nothing here runs '${language}'`);
        const printed = runBlock(block, place).trimEnd().split("\n");
        // There may be other lines in between, which a comment does not promise.
        const promised = promisedLines(code);
        let next = 0;
        for (const text of printed) if (text === promised[next]) next++;
        assert.equal(promised[next], undefined, `not printed, or not in this order:\n${printed.join("\n")}`);
      });
    }
  });
}

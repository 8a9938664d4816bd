/**
 * Every block of code in the README and in docs/ runs as it is printed: JavaScript as a module, shell commands in bash,
 * all blocks of a page in one folder, in order. There is a model.gguf, there are files of the other names that pages use,
 * and a network that has nothing but this model.
 * What a block says that it prints, it prints. Links lead to headings that exist, and sizes are right.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { runNode, runSync, succeeds } from "../support/child";
import { type DocBlock, docBlocks, promisedLines } from "../support/doc-blocks";
import { englishVocabulary } from "../support/english-vocabulary";
import { projectRoot, temporaryFolder } from "../support/paths";
import { safetensorsOf } from "../support/safetensors-files";
import { sampleBert } from "../support/sample-bert";
import { sampleModel, VOCABULARY } from "../support/sample-model";
import { needsModule } from "../support/wasm";

const PAGES = [
  "README.md",
  ...readdirSync(join(projectRoot, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

const noBash = !succeeds("bash") && "there is no bash";
/** Programs that blocks use, and that a machine may not have. */
const missing = ["jq"].filter((program) => !succeeds(program));
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
  "all-minilm-l6-v2-q8_0.gguf": sampleBert(),
  "notes.txt": "the cat sleeps\na page of memory\nthe dog runs\n",
  "chat.jinja": "{% for message in messages %}{{ message.content }}{% endfor %}\n",
  "changes.json": '{ "general.name": "Mine", "general.url": null }\n',
  "app.ts": 'import { openSync } from "gguf-native";\nconsole.log(openSync("model.gguf").tensors.size);\n',
};

interface Playground {
  folder: string;
  env: NodeJS.ProcessEnv;
}

/** Pages about other packages. The recipes want a vocabulary of bytes and merges. */
const RECIPES = "docs/recipes.md";
const WITH_PACKAGES = [RECIPES, "docs/embeddings.md"];
const recipePackages = join(projectRoot, "examples", "recipes", "node_modules");

/** A folder with the files, the package, its command as npx would run it, and the project's own tools, such as esbuild. */
function playground(page: string): Playground {
  const folder = join(root, page.replaceAll("/", "-"));
  const bin = join(folder, "bin");
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  mkdirSync(bin);
  if (WITH_PACKAGES.includes(page) && existsSync(recipePackages)) {
    for (const name of readdirSync(recipePackages)) {
      symlinkSync(join(recipePackages, name), join(folder, "node_modules", name), "junction");
    }
  }
  symlinkSync(projectRoot, join(folder, "node_modules", "gguf-native"), "junction");
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, name), content);
  if (page === RECIPES) {
    const vocabulary = englishVocabulary("hello world hello world", VOCABULARY);
    writeFileSync(join(folder, "model.gguf"), sampleModel(vocabulary));
  }
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
    EGL_PLATFORM: process.env.EGL_PLATFORM ?? "surfaceless", // Mesa's software rendering without a screen
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

/** Finds no adapter without a GPU; with this option, Mesa's. */
const SOFTWARE = 'create(["backend=opengles"])';

/** Why the packages of a recipe are not enough; undefined if they are. */
function recipeNeeds(code: string, { folder, env }: Playground): string | undefined {
  const names = Array.from(code.matchAll(/ from "([^"]+)"/g), ([, name = ""]) => name);
  const others = names.filter((name) => !/^(gguf-native|node:)/.test(name));
  const packages = others.map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)![0]);
  if (packages.some((name) => !existsSync(join(recipePackages, name))))
    return "needs npm --prefix examples/recipes install";
  if (!packages.includes("webgpu")) return undefined;
  const probe = `import { create } from "webgpu";
    process.exit((await ${SOFTWARE}.requestAdapter({ featureLevel: "compatibility" })) === null ? 1 : 0);`;
  writeFileSync(join(folder, "probe.mjs"), probe);
  return runNode(["probe.mjs"], { cwd: folder, env }).status === 0
    ? undefined
    : "there is no WebGPU: apt-get install libegl1 libgles2 libgl1-mesa-dri";
}

/** Why a block cannot be run; false if it can. */
function skipReason({ language, code, notRun }: DocBlock, place: Playground): string | false {
  const program = missing.find((name) => new RegExp(`\\b${name}\\b`).test(code));
  return (
    notRun ??
    recipeNeeds(code, place) ??
    (RUNNERS[language]?.skip ||
      (program !== undefined && `there is no ${program}`) ||
      (code.includes("gguf-native/wasm") && needsModule.skip))
  );
}

function runBlock({ language, code, line }: DocBlock, { folder, env }: Playground): string {
  const { command, ending } = RUNNERS[language]!;
  const file = join(folder, `line-${line}.${ending}`);
  writeFileSync(file, code.replace("create([])", SOFTWARE));
  const [program, ...args] = [...command, file];
  const { status, signal, stdout, stderr } = runSync(program!, args, { cwd: folder, env });
  assert.equal(status ?? signal, 0, `${stdout}${stderr}`);
  return stdout;
}

for (const page of PAGES) {
  describe(page, () => {
    const blocks = docBlocks(readFileSync(join(projectRoot, page), "utf8"));
    const place = playground(page);
    for (const block of blocks.filter(({ language }) => !NOT_PROGRAMS.has(language))) {
      const { language, code, line } = block;
      test(`line ${line}, ${language}`, { skip: skipReason(block, place) }, () => {
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

/** The pages whose links are followed: those that are shown, and those beside the code. */
const LINKED = [
  ...PAGES,
  ...["CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "src/README.md", "view/README.md"],
  ...["", "/dequant", "/dequant/simd", "/quant"].map((folder) => `native${folder}/README.md`),
];

/** The anchors of a page's headings, as they are on GitHub. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(page, "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
  return Array.from(text.matchAll(/^#+ (.*)$/gm), ([, title = ""]) =>
    title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("links lead to files and headings", () => {
  for (const page of LINKED) {
    const text = readFileSync(join(projectRoot, page), "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
    for (const [, path = "", anchor] of text.matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
      const target = path === "" ? join(projectRoot, page) : join(projectRoot, dirname(page), path);
      assert.ok(existsSync(target), `${page}: there is no ${path}`);
      if (anchor === undefined || !target.endsWith(".md")) continue;
      assert.ok(anchorsOf(target).includes(anchor), `${page}: there is no heading for ${path}#${anchor}`);
    }
  }
});

/** What pages say of sizes, in MB: of files, and of these compressed. The addon of one system is not that of another. */
const SIZES: [page: string, says: RegExp, files: RegExp, slack?: number, count?: number][] = [
  ["install", /one system, of six \| (\S+) MB \| (\S+) MB/, /^build\/Release\/gguf_native.node$/, 1.5],
  ["install", /To save (\S+) MB/, /^build\/Release\/gguf_native.node$/, 1.5, 5],
  ["install", /\(`dist`\) \| (\S+) MB \| (\S+) MB/, /^dist\/(?!wasm\/|view\/)/],
  ["install", /`index.cjs`\) \| (\S+) MB \| (\S+) MB/, /^dist\/wasm\//],
  ["install", /`dist\/view`\) \| (\S+) MB \| (\S+) MB/, /^dist\/view\//],
  ["install", /`vendor`\) \| (\S+) MB \| (\S+) MB/, /^(native|vendor)\//],
  ["install", /examples \| (\S+) MB \| (\S+) MB/, /^(docs|examples)\//],
  ["browser", /module in them: (\S+) MB, (\S+) MB compressed/, /^dist\/wasm\/.*\.mjs$/],
  ["browser", /index.html and llama.js, (\S+) MB/, /^build\/llama-page\//],
];
const TOLERANCE = 1.15;

describe("sizes in pages", () => {
  const args = ["pack", "--json", "--dry-run", "--ignore-scripts"];
  const { stdout } = runSync("npm", args, { cwd: projectRoot });
  const page = join(projectRoot, "build", "llama-page");
  const names = [
    ...(JSON.parse(stdout || "[]") as { files: { path: string }[] }[]).flatMap(({ files }) =>
      files.map(({ path }) => path),
    ),
    "build/Release/gguf_native.node",
    ...(existsSync(page) ? readdirSync(page).map((name) => `build/llama-page/${name}`) : []),
  ];
  for (const [name, says, files, slack = TOLERANCE, count = 1] of SIZES) {
    const page = `docs/${name}.md`;
    const found = names.filter((name) => files.test(name) && existsSync(join(projectRoot, name)));
    // Without the module, there are stubs in its place.
    const isStub = files.source.includes("wasm") && needsModule.skip;
    const skip = isStub || (found.length === 0 && `${files.source} is not built`);
    test(`${page}: ${says.source}`, { skip }, () => {
      const bytes = Buffer.concat(found.map((name) => readFileSync(join(projectRoot, name))));
      const [, ...said] = says.exec(readFileSync(join(projectRoot, page), "utf8")) ?? [];
      assert.ok(said.length > 0, "the page no longer says it");
      for (const [i, text] of said.entries()) {
        const real = (count * (i === 0 ? bytes.length : gzipSync(bytes).length)) / 1e6;
        const ratio = real / Number(text);
        assert.ok(ratio < slack && ratio > 1 / slack, `${text} MB: it is ${real.toFixed(2)} MB`);
      }
    });
  }
});

// Runs every JavaScript block of docs/recipes.md in Node.js, against this package and the ones of
// examples/recipes/package.json from npm, and then a check of what it computed: examples/recipes/NAME.check.mjs, in the
// same module. Needs `npm --prefix examples/recipes ci --ignore-scripts`.
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPackage } from "../lib/build.mjs";
import { fail } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const packages = join(root, "examples", "recipes");
if (!existsSync(join(packages, "node_modules"))) {
  fail("the packages are not installed: npm --prefix examples/recipes ci --ignore-scripts");
}
buildPackage();

/** The sections that have a block, with that block. */
const text = readFileSync(join(root, "docs", "recipes.md"), "utf8");
const recipes = text
  .split(/^## /m)
  .flatMap((section) =>
    [...section.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, code]) => ({
      title: section.slice(0, section.indexOf("\n")),
      code,
    })),
  )
  .map(({ title, code }) => ({
    title,
    code,
    name: title
      .toLowerCase()
      .replace(/[^a-z]+/g, "-")
      .replace(/^-/, ""),
  }));
if (recipes.length !== 4)
  fail(`docs/recipes.md has ${recipes.length} blocks of JavaScript, not one in each of 4 sections`);

const folder = mkdtempSync(join(tmpdir(), "gguf-native-recipes-"));
let failed = 0;
try {
  mkdirSync(join(folder, "node_modules", "@huggingface"), { recursive: true });
  mkdirSync(join(folder, "node_modules", "@tensorflow"));
  const { dependencies } = JSON.parse(readFileSync(join(packages, "package.json"), "utf8"));
  for (const name of Object.keys(dependencies)) {
    symlinkSync(join(packages, "node_modules", name), join(folder, "node_modules", name), "junction");
  }
  symlinkSync(root, join(folder, "node_modules", "gguf-native"), "junction");
  await writeModel(join(folder, "model.gguf"));
  const dawn = dawnFlags();
  for (const { title, code, name } of recipes) {
    if (name === "webgpu" && dawn === undefined) {
      console.log(
        `${title}: not run, since there is no WebGPU adapter here, not even a software one (Debian: apt-get install libegl1 libgles2 libgl1-mesa-dri)`,
      );
      continue;
    }
    const program = join(folder, `${name}.mjs`);
    const check = readFileSync(join(packages, `${name}.check.mjs`), "utf8");
    writeFileSync(program, `${code.replace("create([])", `create(${JSON.stringify(dawn)})`)}\n${check}`);
    const { status, stdout, stderr } = run(program);
    if (status === 0 && stdout.endsWith("checked\n")) {
      console.log(`${title}: works`);
    } else {
      failed++;
      console.error(`${title}: failed (${status})\n${stdout}${stderr}`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (failed > 0) process.exit(1);

function run(program) {
  // Mesa's software rendering without a screen.
  const env = { ...process.env, EGL_PLATFORM: process.env.EGL_PLATFORM ?? "surfaceless" };
  return spawnSync(process.execPath, [program], { cwd: folder, env, encoding: "utf8", timeout: 120_000 });
}

/** What Dawn needs to be told to find an adapter; undefined where it finds none. */
function dawnFlags() {
  const probe = join(folder, "probe.mjs");
  writeFileSync(
    probe,
    `import { create } from "webgpu";
     const adapter = await create(process.argv.slice(2)).requestAdapter({ featureLevel: "compatibility" });
     process.exit(adapter === null ? 1 : 0);`,
  );
  const env = { ...process.env, EGL_PLATFORM: process.env.EGL_PLATFORM ?? "surfaceless" };
  return [[], ["backend=opengles"]].find(
    (flags) => spawnSync(process.execPath, [probe, ...flags], { cwd: folder, env }).status === 0,
  );
}

/** A model with one matrix and a vocabulary. */
async function writeModel(path) {
  const { GgufWriter } = createRequire(import.meta.url)(join(root, "dist", "index.js"));
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const visible = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  let next = 256;
  const letters = bytes.map((byte) => String.fromCharCode(visible(byte) ? byte : next++));
  const merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "Ġwor l", "Ġworl d"];
  const tokens = [...letters, ...merges.map((pair) => pair.replace(" ", "")), "<|end|>"];
  const numbers = Float32Array.from({ length: 96 * 31 }, (_, i) => Math.cos(i * 0.7) * 0.1);
  await new GgufWriter()
    .set("tokenizer.ggml.model", "gpt2")
    .set("tokenizer.ggml.pre", "gpt-2")
    .set("tokenizer.ggml.tokens", tokens)
    .set(
      "tokenizer.ggml.token_type",
      tokens.map((token) => (token === "<|end|>" ? 3 : 1)),
      "int32[]",
    )
    .set("tokenizer.ggml.merges", merges)
    .addTensor("blk.0.attn_q.weight", "Q4_0", [96, 31], numbers)
    .write(path);
}

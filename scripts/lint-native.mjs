// Checks the C++ sources: their format (with --fix: formats them), that only native/binding knows Node, and that
// everything in it does.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folders = ["native", "test/native", "test/fuzz"];
const nodeFree = ["native/core/", "native/dequant/", "native/decode/", "native/portable/"];
// Releases of clang-format differ in what they make of the same source; CI has this one.
const clangFormatVersion = 16;

function filesUnder(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)).replaceAll("\\", "/"));
}

function findClangFormat() {
  for (const command of [`clang-format-${clangFormatVersion}`, "clang-format"]) {
    const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
    if (status !== 0) continue;
    const version = Number(/version (\d+)/.exec(stdout)?.[1]);
    if (version !== clangFormatVersion) {
      console.warn(`${command} is version ${version}; ${clangFormatVersion} is what CI checks with`);
    }
    return command;
  }
  console.error(`clang-format was not found. On Debian: apt-get install clang-format-${clangFormatVersion}`);
  process.exit(1);
}

function checkFormat(files, fix) {
  const mode = fix ? ["-i"] : ["--dry-run", "--Werror"];
  return spawnSync(findClangFormat(), [...mode, ...files], { cwd: root, stdio: "inherit" }).status === 0;
}

const read = (file) => readFileSync(join(root, file), "utf8");

/** Every line outside the binding that includes Node's headers or uses its types. */
function linesThatKnowNode(files) {
  const finds = [];
  for (const file of files.filter((name) => nodeFree.some((folder) => name.startsWith(folder)))) {
    for (const [index, line] of read(file).split("\n").entries()) {
      if (/\bnapi_|\bNapi::|<napi\.h>|<node(_api)?\.h>|<v8|<uv\.h>|"binding\//.test(line)) {
        finds.push(`${file}:${index + 1}: only native/binding may know Node: ${line.trim()}`);
      }
    }
  }
  return finds;
}

/** Every file of the binding that does not include napi.h, itself or through others of the binding. */
function filesThatDoNotNeedNode(files) {
  const binding = files.filter((name) => name.startsWith("native/binding/"));
  const knows = new Set(binding.filter((file) => read(file).includes("#include <napi.h>")));
  for (let before = -1; before !== knows.size; ) {
    before = knows.size;
    for (const file of binding) {
      const includes = [...read(file).matchAll(/^#include "(binding\/[^"]+)"/gm)];
      if (includes.some(([, header]) => knows.has(`native/${header}`))) knows.add(file);
    }
  }
  return binding
    .filter((file) => !knows.has(file))
    .map((file) => `${file}: does not know Node, and belongs into another folder than native/binding`);
}

const files = folders.flatMap(filesUnder).filter((name) => /\.(h|cc?)$/.test(name));
const formatted = checkFormat(files, process.argv.includes("--fix"));
const finds = [...linesThatKnowNode(files), ...filesThatDoNotNeedNode(files)];
for (const find of finds) console.error(find);
if (!formatted || finds.length > 0) process.exit(1);
console.log(`${files.length} C++ files are in order`);

// Checks the C++ sources: their format (with --fix: formats them), that only native/binding knows Node, and that
// everything in it does; that mutexes are those of core/mutex.h; and with Clang, on Linux on x86-64, that what they guard
// is used only where they are locked, that no length of 64 bits is cut short where memory has addresses of 32, and that
// big-endian systems are refused.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { isThere, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const folders = ["native", "test/native", "test/fuzz"];
const nodeFree = [
  "native/core/",
  "native/dequant/",
  "native/quant/",
  "native/network/",
  "native/machine/",
  "native/work/",
  "native/wasm/",
  "native/portable/",
];
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
    const { status, stdout } = tryRun(command, ["--version"]);
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
  return tryRun(findClangFormat(), [...mode, ...files], { stdio: "inherit" }).status === 0;
}

const read = (file) => readFileSync(join(root, file), "utf8");

const includesOf = (file) => [...read(file).matchAll(/^#include "([^"]+)"/gm)].map(([, header]) => `native/${header}`);

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
      if (includesOf(file).some((header) => knows.has(header))) knows.add(file);
    }
  }
  return binding
    .filter((file) => !knows.has(file))
    .map((file) => `${file}: does not know Node, and belongs into another folder than native/binding`);
}

const mutexHeader = "native/core/mutex.h";

/** Every file with a mutex that Clang does not check. */
function filesWithOtherMutexes(files) {
  return files
    .filter((name) => name.startsWith("native/") && name !== mutexHeader)
    .filter((file) => /\bstd::\w*mutex\b|#include <(shared_)?mutex>/.test(read(file)))
    .map((file) => `${file}: a mutex is a Mutex of core/mutex.h, so that Clang checks what it guards`);
}

/** What Clang says of sources that it compiles with these options. */
function compile(clang, options, sources) {
  const { status, stderr } = tryRun(clang, ["-std=c++17", "-fsyntax-only", "-I.", ...options, ...sources], {
    cwd: join(root, "native"),
  });
  return { compiles: status === 0, output: stderr };
}

/**
 * Compiles what knows no Node for x86-64 with pointers of 32 bits, which needs no headers of another system: there a
 * number of 64 bits becomes a size only by to_size(), or by a cast that says why it is small enough.
 */
function lengthsCutShort(clang) {
  const folder = mkdtempSync(join(tmpdir(), "gguf-native-lint-"));
  try {
    // The one header that depends on the size of pointers and may be missing. It only lists functions that do nothing.
    mkdirSync(join(folder, "gnu"));
    writeFileSync(join(folder, "gnu", "stubs-x32.h"), "");
    const { output } = compile(clang, ["-xc++", "-E", "-v"], ["/dev/null"]);
    const headers = /search starts here:\n((?: .*\n)+)/g;
    const system = [...output.matchAll(headers)].flatMap(([, list]) => list.trim().split(/\n */));
    const options = [
      ...["--target=x86_64-linux-gnux32", "-D_FILE_OFFSET_BITS=64", "-Wshorten-64-to-32", "-Werror"],
      ...[...system, folder].map((name) => `-isystem${name}`),
    ];
    const sources = read("native/sources.txt").match(/^(core|dequant|quant|network|machine|work)\/\S+/gm);
    const { compiles, output: errors } = compile(clang, options, sources);
    return compiles ? [] : [errors];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Uses of what a mutex guards where it is not locked: in sources with a Mutex of their own or of a header they include. */
function missingLocks(clang) {
  const includesMutex = (file) => includesOf(file).includes(mutexHeader);
  const sources = read("native/sources.txt")
    .match(/^\w+\/\S+/gm)
    .filter((name) => [`native/${name}`, ...includesOf(`native/${name}`)].some(includesMutex));
  const { compiles, output } = compile(
    clang,
    [
      ...["-Wthread-safety", "-Werror=thread-safety"],
      ...["node-addon-api", "node-api-headers/include"].map((name) => `-isystem../node_modules/${name}`),
      ...["-DNAPI_VERSION=8", "-DNODE_ADDON_API_CPP_EXCEPTIONS"],
    ],
    sources,
  );
  return compiles ? [] : [output];
}

/** The headers that numbers are read by, where they would be read wrongly and still compile. */
function bigEndianAccepted(clang) {
  const options = ["-xc++", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"];
  return ["core/byte_order.h", "dequant/blocks.h"]
    .filter((header) => !/#error|for little-endian systems/.test(compile(clang, options, [header]).output))
    .map((header) => `native/${header} compiles for a big-endian system`);
}

function foundByClang() {
  const clang = ["clang++-16", "clang++"].find(isThere);
  if (clang === undefined || process.platform !== "linux" || process.arch !== "x64") {
    console.warn("not checked for missing locks, 32-bit and big-endian systems: that takes Clang, on Linux on x86-64");
    return [];
  }
  return [...missingLocks(clang), ...lengthsCutShort(clang), ...bigEndianAccepted(clang)];
}

const files = folders.flatMap(filesUnder).filter((name) => /\.(h|cc?)$/.test(name));
const formatted = checkFormat(files, process.argv.includes("--fix"));
const finds = [
  ...linesThatKnowNode(files),
  ...filesThatDoNotNeedNode(files),
  ...filesWithOtherMutexes(files),
  ...foundByClang(),
];
for (const find of finds) console.error(find);
if (!formatted || finds.length > 0) process.exit(1);
console.log(`${files.length} C++ files are in order`);

/** The package as its users see it: ES modules and CommonJS, one set of classes, types for both. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import ts from "typescript";
import { lineOf } from "../support/child";
import { ALL_TYPES, goldenPath } from "../support/golden";
import { projectRoot, temporaryFolder } from "../support/paths";

const NAMES = [
  "GgufError GgufFile GgufMetadata GgufTensor GgufWriter RemoteGgufFile RemoteGgufTensor",
  "SafetensorsFile SafetensorsTensor allocate allocateArray convertLora convertModel cpu dequantize dequantizeSync ggmlTypes",
  "isGgmlType loadAll matmul matmulAllSync matmulSync mergeLora mergeModel open openRemote openSafetensors openSync parse",
  "parseFileName parseMetadataValue quantize quantizeModel quantizeSync recover releaseMemory setMetadata",
  "splitModel trim",
].flatMap((line) => line.split(" "));

/** A project that has the package in its node_modules: GGUF_NATIVE_TEST_PROJECT, or one beside this project. */
const project = process.env.GGUF_NATIVE_TEST_PROJECT ?? makeProject();

function makeProject(): string {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(projectRoot, join(folder, "node_modules", "gguf-native"), "junction");
  return folder;
}

const NODE_TYPES: ts.CompilerOptions = {
  types: ["node"],
  typeRoots: [join(projectRoot, "node_modules", "@types")],
};

/** Source files by name and kind of module: the libraries are parsed once for all programs. */
const parsed = new Map<string, ts.SourceFile | undefined>();

function compilerHost(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const parse = host.getSourceFile;
  host.getCurrentDirectory = () => project;
  host.getSourceFile = (name, language, ...rest) => {
    const format = typeof language === "object" ? language.impliedNodeFormat : undefined;
    const key = `${name} ${format}`;
    if (!parsed.has(key)) parsed.set(key, parse(name, language, ...rest));
    return parsed.get(key);
  };
  return host;
}

/** Finds no error in sources of the project. */
function compile(resolution: "node16" | "bundler", more: ts.CompilerOptions, ...files: string[]): ts.Program {
  const [module, moduleResolution] =
    resolution === "node16"
      ? [ts.ModuleKind.Node16, ts.ModuleResolutionKind.Node16]
      : [ts.ModuleKind.ESNext, ts.ModuleResolutionKind.Bundler];
  const options: ts.CompilerOptions = {
    ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, target: ts.ScriptTarget.ES2022 },
    ...{ module, moduleResolution, ...more },
  };
  const program = ts.createProgram(
    files.map((file) => join(project, file)),
    options,
    compilerHost(options),
  );
  expectNoErrors([...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()]);
  expectNoErrors(program.getRootFileNames().flatMap((name) => errorsOf(program, program.getSourceFile(name)!)));
  return program;
}

/** Finds no error in the package's own declarations, without skipLibCheck; takes a second. */
function checkDeclarations(program: ts.Program): void {
  const declarations = program.getSourceFiles().filter(({ fileName }) => /\/dist\/.*\.d\.m?ts$/.test(fileName));
  assert.ok(declarations.length > 10);
  expectNoErrors(declarations.flatMap((file) => errorsOf(program, file)));
}

const errorsOf = (program: ts.Program, file: ts.SourceFile): readonly ts.Diagnostic[] => [
  ...program.getSyntacticDiagnostics(file),
  ...program.getSemanticDiagnostics(file),
];

function expectNoErrors(diagnostics: readonly ts.Diagnostic[]): void {
  assert.equal(ts.formatDiagnostics(diagnostics, compilerHost({})), "");
}

const node = (...args: string[]) => lineOf(args, { cwd: project });

describe("a project that installed the package", () => {
  test("as an ES module", async () => {
    copyFileSync(join(__dirname, "consumers", "esm.mjs"), join(project, "esm.mjs"));
    assert.deepEqual(JSON.parse(await node("esm.mjs", goldenPath)), {
      ...{ sameClasses: true, knowsErrors: true, sameNames: true, names: NAMES, isFile: true },
      ...{ types: ALL_TYPES.length, isa: "string", lengths: [1, 2048] },
    });
  });
  test("as CommonJS", async () => {
    copyFileSync(join(__dirname, "consumers", "cjs.cjs"), join(project, "cjs.cjs"));
    assert.deepEqual(JSON.parse(await node("cjs.cjs", goldenPath)), { lengths: [2048, 32], names: NAMES });
  });
  test("the reference loads no native code", async () => {
    const program = `require("gguf-native/reference");
      console.log(Object.keys(require.cache).filter((file) => /\\.node$|native\\.js$/.test(file)).length)`;
    assert.equal(await node("-e", program), "0\n");
  });
  test("the types need no other types", () => {
    const source = `import { openSync, GgufFile, matmul, matmulSync, quantizeSync, type GgufValue } from "gguf-native";
      import { dequantizeSync, quantizeSync as quantizeInTypeScript } from "gguf-native/reference";
      const file: GgufFile = openSync(new URL("file:///x"), { access: "read" });
      const value: GgufValue | undefined = file.metadata.get("x");
      const map: ReadonlyMap<string, GgufValue> = file.metadata;
      const floats: Float32Array = file.tensor("x").dequantizeSync();
      const bits: Uint16Array = file.tensor("x").dequantizeSync({ dtype: "f16", out: new Uint16Array(1) });
      const later: Promise<Uint16Array> = file.tensor("x").dequantize({ dtype: "bf16", onProgress: (a, b) => a / b });
      const rows: Float32Array = file.tensor("x").rowsSync([1]);
      const laterRows: Promise<Uint16Array> = file.tensor("x").rows([1], { dtype: "f16" });
      const plain: Float32Array = dequantizeSync("Q4_K", new Uint8Array(144), { start: 0 });
      const blocks: Uint8Array = quantizeSync("Q8_0", plain);
      interface Mine extends Uint8Array { mine: true }
      const mine: Mine = quantizeSync("Q8_0", plain, { out: {} as Mine });
      // @ts-expect-error: without an out of that class, none comes back
      const notMine: Mine = quantizeSync("Q8_0", plain);
      // @ts-expect-error: nor here
      const notMineEither: Mine = quantizeInTypeScript("Q8_0", plain);
      const product: Promise<Float32Array> = matmul("Q8_0", blocks, 32, plain, { onProgress: () => 1 });
      matmulSync("Q8_0", blocks, 32, plain, { threads: 1 });
      matmul("Q8_0", blocks, 32, plain, { threads: 1 });
      // @ts-expect-error: not a tensor type
      dequantizeSync("Q9_9", new Uint8Array(1));
      // @ts-expect-error: bits do not go into floats
      file.tensor("x").dequantizeSync({ dtype: "f16", out: new Float32Array(1) });
      // @ts-expect-error: not for callers
      new GgufFile();
      export { value, map, floats, bits, later, rows, laterRows, plain, mine, notMine, notMineEither, product };`;
    writeFileSync(join(project, "consumer.mts"), source);
    writeFileSync(join(project, "consumer.cts"), source);
    checkDeclarations(compile("node16", NODE_TYPES, "consumer.mts", "consumer.cts"));
    compile("bundler", NODE_TYPES, "consumer.mts");
  });
  test("the types need none of Node's if the browser's are available", () => {
    const source = `import { GgufWriter, openRemote, openSync, type TensorData } from "gguf-native";
      import { dequantizeSync } from "gguf-native/reference";
      const data: TensorData[] = [new Int16Array(1), new Uint8ClampedArray(1), new BigInt64Array(1)];
      // @ts-expect-error: not tensor data
      const none: TensorData = 1;
      const closed: () => void = openSync("x")[Symbol.dispose];
      const values: Float32Array = dequantizeSync("Q4_K", new Uint8Array(144));
      export { GgufWriter, openRemote, data, none, closed, values };`;
    writeFileSync(join(project, "bare.mts"), source);
    writeFileSync(join(project, "bare.cts"), source);
    const noTypes = join(project, "no-types");
    mkdirSync(noTypes, { recursive: true });
    checkDeclarations(compile("node16", { typeRoots: [noTypes] }, "bare.mts", "bare.cts"));
    compile("bundler", { typeRoots: [noTypes] }, "bare.mts");
  });
  test("the types have Float16Array if the library has it", () => {
    const source = `import { openSync } from "gguf-native";
      const tensor = openSync("x").tensor("x");
      const out = new Float16Array(1);
      const halves: Float16Array = tensor.dequantizeSync({ dtype: "f16", out });
      const later: Promise<Float16Array> = tensor.rows([1], { dtype: "f16", out });
      // @ts-expect-error: only for f16
      tensor.dequantizeSync({ dtype: "bf16", out });
      export { halves, later };`;
    writeFileSync(join(project, "half.mts"), source);
    compile("node16", { ...NODE_TYPES, lib: ["lib.esnext.d.ts"] }, "half.mts");
  });
});

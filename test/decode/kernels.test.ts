/**
 * The primitives that kernels are written in (native/dequant/simd) are what their README says, and headers of kernels
 * are complete: an editor that opens one alone sees no errors.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { runSync, succeeds } from "../support/child";
import { projectRoot } from "../support/paths";

const dequant = join(projectRoot, "native", "dequant");
const read = (...path: string[]) => readFileSync(join(dequant, ...path), "utf8");
const headers = (folder: string) => readdirSync(join(dequant, folder)).filter((name) => name.endsWith(".h"));
const matches = (source: string, pattern: RegExp) => new Set([...source.matchAll(pattern)].map((match) => match[1]!));

/** The names in the first column of the tables: `load<Bits>(p)`, `kName`. */
const documented = matches(
  read("simd", "README.md").replaceAll(/^\| ([^|]*)\|.*$/gm, (_, cell: string) => `${cell.replaceAll(", `", "\n`")}`),
  /^`(\w+)/gm,
);
const macros = [...documented].filter((name) => name.startsWith("GGUF_"));
const primitives = [...documented].filter((name) => !name.startsWith("GGUF_"));

/** The functions, types and constants of the namespace `simd`. */
function defined(source: string): Set<string> {
  const inside = source.slice(source.indexOf("namespace simd {"), source.lastIndexOf("}  // namespace simd"));
  return matches(inside, /^(?:GGUF_INLINE [^\n(]*?|struct |using |constexpr [^\n=]*?)(\w+)(?=\(| \{|;| =\s)/gm);
}

/** The instruction sets, with the headers that make each. */
const SETS: Record<string, string[]> = {
  scalar: ["scalar.h", "scalar_bytes.h", "dots_of_units.h", "rounding.h"],
  avx2: ["avx2.h", "avx2_bytes.h", "x86_bytes.h", "x86.h"],
  avx512: ["avx512.h", "avx512_bytes.h", "x86_bytes.h", "x86.h"],
  neon: ["neon.h", "registers128.h", "neon_bytes.h", "dots_of_units.h", "rounding.h"], // and again with neon_dotprod.h and neon_i8mm.h
  wasm: ["wasm.h", "registers128.h", "wasm_bytes.h", "dots_of_units.h", "rounding.h"],
};

describe("the primitives of the README", () => {
  test("are all of the headers of the scalar set, and nothing else", () => {
    const names = SETS.scalar!.flatMap((file) => [...defined(read("simd", file))]);
    assert.deepEqual([...new Set(names)].sort(), [...primitives].sort());
  });
  for (const [set, files] of Object.entries(SETS)) {
    test(`are defined by ${set}`, () => {
      const names = new Set(files.flatMap((file) => [...defined(read("simd", file))]));
      const matching = primitives.filter((name) => !names.has(name));
      assert.deepEqual(matching, []);
    });
  }
  test("there are no other sets", () => {
    const sets = headers("simd").filter((name) => read("simd", name).includes("#define GGUF_SIMD_SET"));
    assert.deepEqual(sets.map((name) => name.replace(".h", "")).sort(), Object.keys(SETS).sort());
  });
  test("are all that kernels and sinks use", () => {
    for (const folder of ["kernels", "sinks", "isa"]) {
      for (const name of headers(folder)) {
        const used = matches(read(folder, name), /\bsimd::(\w+)/g);
        assert.deepEqual(
          [...used].filter((primitive) => !documented.has(primitive)),
          [],
          name,
        );
      }
    }
  });
  test("each have a case in the C++ tests", () => {
    const tests = join(projectRoot, "test", "native", "dequant");
    const cases = ["primitive_cases.h", "primitive_byte_cases.h"].map((name) =>
      readFileSync(join(tests, name), "utf8"),
    );
    // Named with their namespace, or by a macro that adds it.
    const used = matches(cases.join("\n"), /\b(?:simd::|LOAD_\w+\()(\w+)/g);
    // Of codes and levels, which kernels of all formats compare, and constants that decide about speed alone.
    const codes = /^(Codes|Trits|Values|Scaled|Affine|BookRows|join_rows|load_packed|load_nibble_runs|gather\d+)$/;
    const digits = /^(shift_halves|load_trits|times3|top_trits|CodeTransposer)$/;
    const speed = /^(kStreams|kMultipliesInKernels|kMultipliesCodesInKernels|kPairRegisters|kTileSums)$/;
    const left = primitives.filter(
      (name) => !used.has(name) && !codes.test(name) && !digits.test(name) && !speed.test(name),
    );
    assert.deepEqual(left, []);
  });
  test("with the macros of a set", () => {
    assert.deepEqual(macros.sort(), ["GGUF_ISA_FEATURES", "GGUF_SIMD_SET"]);
    for (const set of ["avx2", "avx512"]) assert.match(read("simd", `${set}.h`), /#define GGUF_ISA_FEATURES "/);
  });
});

describe("a header alone", () => {
  const compiler = (process.env.CXX ?? "c++").split(" ");
  const found = succeeds(compiler[0]!, [...compiler.slice(1), "--version"]);
  const skip = found ? false : `no compiler: ${compiler.join(" ")}`;
  for (const folder of ["kernels", "sinks"]) {
    test(`compiles: every one of ${folder}`, { skip }, () => {
      const source = headers(folder).map((name) => {
        const args = ["-std=c++17", "-fsyntax-only", "-x", "c++", "-I", join(projectRoot, "native"), "-"];
        const input = `#include "dequant/${folder}/${name}"\n`;
        const { status, stderr } = runSync(compiler[0]!, [...compiler.slice(1), ...args], {
          input,
        });
        return [name, status, stderr];
      });
      const expected = headers(folder).map((name) => [name, 0, ""]);
      assert.deepEqual(source, expected);
    });
  }
});

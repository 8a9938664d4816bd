/** The builds of ggml's CPU backend in the npm package `@node-llama-cpp/linux-x64`: one for each kind of processor. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Koffi } from "./koffi";

/** Our sets of x86-64, each of which has the ones before. */
const SETS = ["scalar", "avx2", "avx2_vnni", "avx512", "avx512_amx"];

/** The first of them that has what a build uses. Other builds are for other processors, or made for this machine. */
const SETS_OF_BUILDS: Readonly<Record<string, string>> = {
  ...{ x64: "scalar", sse42: "avx2", sandybridge: "avx2", ivybridge: "avx2", piledriver: "avx2" },
  ...{ haswell: "avx2", alderlake: "avx2_vnni" },
  ...{ skylakex: "avx512", cannonlake: "avx512", cascadelake: "avx512", cooperlake: "avx512" },
  ...{ icelake: "avx512", zen4: "avx512", sapphirerapids: "avx512_amx" },
};

/** Whether a build uses no more than one of our instruction sets. */
export function isWithin(isa: string, build: string): boolean {
  const name = /^libggml-cpu-(\w+)\.so$/.exec(build)?.[1];
  const set = name === undefined ? undefined : SETS_OF_BUILDS[name];
  return set === undefined || !SETS.includes(isa) || SETS.indexOf(set) <= SETS.indexOf(isa);
}

/**
 * The file of the best build in a folder that runs here, and uses no more than `isa`: a comparison is fair if both use the
 * same instructions. Each build rates itself: 0 if it cannot run on this processor.
 */
export function bestGgmlBuild(koffi: Pick<Koffi, "load">, folder: string, isa: string): string | undefined {
  const rated = readdirSync(folder)
    .filter((name) => /^libggml-cpu.*\.so$/.test(name) && isWithin(isa, name))
    .map((name) => ({ name, score: score(koffi, join(folder, name)) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score);
  return rated[0]?.name;
}

function score(koffi: Pick<Koffi, "load">, path: string): number {
  const library = koffi.load(path);
  try {
    return Number(library.func("ggml_backend_score", "int", [])());
  } catch {
    return 1; // the only build, made for this machine
  }
}

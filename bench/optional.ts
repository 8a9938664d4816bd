/** Packages that are used where they are installed. Nothing here is needed to run the benchmarks. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { benchFolder } from "./paths";

/** How `koffi` is used here: functions of shared libraries, called in this process. */
export interface Koffi {
  load(path: string): KoffiLibrary;
  /** Where a typed array's memory is. */
  address(array: ArrayBufferView): bigint;
}
export interface KoffiLibrary {
  func(name: string, result: string, parameters: readonly string[]): NativeFunction;
}
/** Takes numbers, and typed arrays for pointers. */
export type NativeFunction = (...args: unknown[]) => unknown;

/**
 * Imports a package that `bench/package.json` or that of `folder` names; undefined where it is not installed.
 * The import is made by a file in that folder, since packages are looked up from the file that imports them.
 */
export async function optionalPackage<T>(name: string, folder = benchFolder): Promise<T | undefined> {
  const loader = (await import(pathToFileURL(join(folder, "load.mjs")).href)) as {
    load(name: string): Promise<unknown>;
  };
  try {
    return (await loader.load(name)) as T;
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

let koffi: Promise<Koffi | undefined> | undefined;

export function loadKoffi(): Promise<Koffi | undefined> {
  koffi ??= optionalPackage<{ default: Koffi }>("koffi").then((module) => module?.default);
  return koffi;
}

export const INSTALL_HINT = "npm --prefix bench ci";

/** The first path that exists. */
export function firstExisting(paths: readonly (string | undefined)[]): string | undefined {
  return paths.find((path) => path !== undefined && existsSync(path));
}

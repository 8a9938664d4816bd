/** Optional packages. The benchmarks run without them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Koffi } from "../test/support/koffi";
import { benchFolder } from "./paths";

/**
 * Imports a package that `folder`'s package.json lists (default: bench/package.json); undefined if it is not installed.
 * A file in that folder does the import, because Node searches for a package from the file that imports it.
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

export const INSTALL_HINT = "npm --prefix bench install";

/** The first path that exists. */
export function firstExisting(paths: readonly (string | undefined)[]): string | undefined {
  return paths.find((path) => path !== undefined && existsSync(path));
}

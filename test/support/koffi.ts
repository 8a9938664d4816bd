/** koffi, which calls functions of shared libraries, and llama.cpp's libraries: packages of the benchmarks. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { projectRoot } from "./paths";

/** Parameters are numbers, typed arrays or addresses for pointers, and objects for structures. */
export type NativeFunction = (...args: unknown[]) => unknown;

export interface KoffiLibrary {
  func(name: string, result: string, parameters: readonly unknown[]): NativeFunction;
}

/** The part of koffi that is used. It knows a type once in a process. */
export interface Koffi {
  load(path: string, options?: { global: boolean }): KoffiLibrary;
  /** Defines a structure, which parameters can have by its name. */
  struct(name: string, fields: Readonly<Record<string, unknown>>): unknown;
  array(type: string, length: number): unknown;
  proto(definition: string): unknown;
  pointer(type: unknown): unknown;
  register(callback: (...args: never[]) => unknown, type: unknown): unknown;
  /** The value of type `type` at `offset` bytes from a pointer. */
  decode(pointer: unknown, offset: number, type: string): unknown;
  /** The address of a pointer, or of a typed array's memory. */
  address(pointer: unknown): bigint;
  view(pointer: unknown, bytes: number): ArrayBuffer;
}

/** The folder of llama.cpp's libraries. */
export const llamaBins = join(projectRoot, "bench/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64");

/** @throws where it is not installed */
export async function loadKoffi(): Promise<Koffi> {
  const { load } = (await import(pathToFileURL(join(projectRoot, "bench", "load.mjs")).href)) as {
    load(name: string): Promise<{ default: Koffi }>;
  };
  return (await load("koffi")).default;
}

/**
 * Run by itself, on the instruction set that GGUF_NATIVE_ISA names, or in WebAssembly by three threads, however little there is to do:
 * prints how the functions between products differ from the reference.
 */
import { cpu } from "gguf-native";
import * as network from "gguf-native/network";
import { threadsOfNode } from "#dist/backend/wasm/in-node";
import { setThreading, useThreads } from "#dist/backend/wasm/threads";
import { compareWithReference } from "./network-cases";
import { modulePath } from "./paths";

async function main(): Promise<void> {
  const { isa } = cpu();
  let threads: number | undefined;
  if (isa === "wasm") {
    const waiting = setTimeout(() => undefined, 60_000); // for threads, which keep no process
    setThreading({ ...threadsOfNode(modulePath), processors: () => 3, share: 1 });
    threads = await useThreads(3);
    clearTimeout(waiting);
  }
  console.log(JSON.stringify({ isa, threads, ...compareWithReference(network) }));
}

void main();

// A program that only has to compile: scripts/platforms/typescript.mjs does so with old and new versions of TypeScript.
import {
  allocate,
  dequantize,
  dequantizeSync,
  type GgufTensor,
  type GgufValue,
  matmulSync,
  openRemote,
  openSync,
} from "gguf-native";
import * as reference from "gguf-native/reference";

const file = openSync("x");
declare function notAny(value: null): void;

// What a loop gives has its type: `any` could be passed as null, too.
for (const [key, value] of file.metadata) {
  // @ts-expect-error: a string
  notAny(key);
  // @ts-expect-error: a value
  notAny(value);
}
for (const [key, value] of file.metadata.entries()) {
  // @ts-expect-error: a string
  notAny(key);
  // @ts-expect-error: a value
  notAny(value);
}
for (const key of file.metadata.keys()) {
  // @ts-expect-error: a string
  notAny(key);
}
for (const value of file.metadata.values()) {
  // @ts-expect-error: a value
  notAny(value);
}
for (const [name, tensor] of file.tensors) {
  // @ts-expect-error: a string
  notAny(name);
  // @ts-expect-error: a tensor
  notAny(tensor);
}
const keys: string[] = [...file.metadata.keys()];
const tensors: GgufTensor[] = [...file.tensors.values()];
const map: ReadonlyMap<string, GgufValue> = file.metadata;

const x = new Float32Array(1);
const blocks = new Uint8Array(4);

async function useResults(tensor: GgufTensor): Promise<void> {
  const remote = (await openRemote("x")).tensor("x");
  const v = tensor.dequantizeSync();
  new Blob([v]);
  new Response(v);
  await crypto.subtle.digest("SHA-256", v);
  structuredClone(v, { transfer: [v.buffer] });

  // Where the result is used must not change its type.
  new Blob([tensor.dequantizeSync(), await tensor.dequantize(), tensor.dequantizeSync({ dtype: "f16" })]);
  new Blob([tensor.rowsSync([1]), await tensor.rows([1], { dtype: "bf16" })]);
  new Blob([tensor.matmulSync(x), await tensor.matmul(x, { start: 0 }), matmulSync("F32", blocks, 1, x)]);
  new Blob([dequantizeSync("F32", blocks), await dequantize("F32", blocks), allocate(1), allocate(1, "f16")]);
  new Blob([await tensor.read(), tensor.bytes(), tensor.nameBytes()]);
  new Blob([await remote.read(), await remote.dequantize(), await remote.rows([1])]);
  new Blob([reference.dequantizeSync("F32", blocks), reference.matmulSync("F32", blocks, 1, x)]);
  new Response(await tensor.dequantize());
  new Response(await tensor.read());
  new Response(tensor.bytes());
  await crypto.subtle.digest("SHA-256", await tensor.dequantize({ dtype: "f16", start: 0 }));
  await crypto.subtle.digest("SHA-256", await remote.rows([1]));
  await crypto.subtle.digest("SHA-256", tensor.bytes());

  const numbers = file.metadata.numbers("x");
  if (numbers !== undefined) {
    new Blob([numbers]);
    new Response(numbers);
    await crypto.subtle.digest("SHA-256", numbers);
  }
  const key = file.metadata.keyBytes("x");
  if (key !== undefined) new Blob([key]);
}

/** A call gives back the array that it was given. */
const shared = new Float32Array(new SharedArrayBuffer(4));
const given: typeof shared = file.tensor("x").dequantizeSync({ out: shared });
const floats: Float32Array = file.tensor("x").dequantizeSync();
const bits: Promise<Uint16Array> = file.tensor("x").dequantize({ dtype: "bf16" });

export { bits, floats, given, keys, map, tensors, useResults };

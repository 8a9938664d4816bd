/**
 * What test/wasm/entry.test.ts does with `gguf-native/wasm`, in a browser and in Node: opens the golden file in every way,
 * and hands back what is different from what the addon found.
 */
import {
  cpu,
  type GgufModel,
  type GgufModelTensor,
  ggmlTypes,
  matmulSync,
  openBlob,
  openRemote,
  openSafetensors,
  parse,
  quantizeSync,
  useThreads,
} from "gguf-native/wasm";
import { firstDifference } from "./compare";
import { LARGE, textOf, vectors, type WasmInput, type WasmResult } from "./wasm-facts";

/** NaNs have any payload. */
const sameBits = (values: Float32Array, bits: readonly number[]): boolean =>
  firstDifference(values, new Float32Array(Uint32Array.from(bits).buffer)) === -1;

/** Compares all tensors of a model with the addon's facts. Says how many. */
async function compareModel(
  model: GgufModel<GgufModelTensor>,
  { facts, metadata }: WasmInput,
  report: (difference: string) => void,
): Promise<{ compared: number }> {
  if (textOf(model.metadata) !== metadata) report("metadata");
  let compared = 0;
  for (const [name, tensor] of model.tensors) {
    const known = facts[name]!;
    if (!sameBits(await tensor.dequantize(), known.numbers)) report(name);
    if ("dequantizeSync" in tensor) {
      const numbers = (tensor as { dequantizeSync(): Float32Array }).dequantizeSync();
      if (!sameBits(numbers, known.numbers)) report(`${name} at once`);
    }
    const columns = tensor.shape[0]!;
    const last = tensor.elementCount / columns - 1;
    const row = await tensor.rows([last]);
    if (!sameBits(row, known.numbers.slice(last * columns))) report(`${name} row`);
    if (textOf(await tensor.stats({ bins: 4 })) !== known.stats) report(`${name} statistics`);
    const products = await tensor.matmul(vectors(tensor.shape[0]!));
    if (!sameBits(products, known.products)) report(`${name} products`);
    const fast = await tensor.matmul(vectors(tensor.shape[0]!), { activations: "int8" });
    if (!sameBits(fast, known.int8Products)) report(`${name} products of 8 bits`);
    const { sameBytes } = await tensor.compare(tensor);
    if (!sameBytes) report(`${name} compared with itself`);
    compared++;
  }
  return { compared };
}

/** Opens the model of safetensors as a folder on a server and as a `Blob`. Says how many tensors each of them has. */
async function compareSafetensors(
  { url, numbers }: WasmInput["safetensors"],
  report: (difference: string) => void,
): Promise<number[]> {
  const blob = await (await fetch(`${url}model.safetensors`)).blob();
  const counts: number[] = [];
  for (const from of [url, blob]) {
    const model = await openSafetensors(from);
    for (const [name, bits] of Object.entries(numbers)) {
      const tensor = model.tensor(name);
      if (!sameBits(await tensor.dequantize(), bits)) report(`${name} of safetensors`);
      if ((await tensor.stats()).count !== bits.length) report(`${name} of safetensors, statistics`);
    }
    counts.push(model.tensors.size);
    model.close();
  }
  return counts;
}

async function codeOf(run: () => unknown): Promise<string> {
  try {
    await run();
    return "none";
  } catch (error) {
    const { name, code, message } = error as Error & { code?: string };
    return `${name} ${code}: ${message}`;
  }
}

export async function runChecks(input: WasmInput): Promise<WasmResult> {
  const threads = await useThreads(2);
  const bytes = new Uint8Array(await (await fetch(input.url)).arrayBuffer());
  const differences: string[] = [];
  const compared: WasmResult["compared"] = {};
  const compare = async (way: string, model: GgufModel<GgufModelTensor>): Promise<void> => {
    const report = (difference: string): void => void differences.push(`${way}: ${difference}`);
    compared[way] = await compareModel(model, input, report);
    model.close();
  };
  await compare("parse", parse(bytes));
  await compare("openBlob", await openBlob(new Blob([bytes])));
  await compare("openRemote", await openRemote(input.url));

  const safetensors = await compareSafetensors(input.safetensors, (each) => void differences.push(each));

  const numbers = vectors(64);
  const blocks = quantizeSync("Q8_0", numbers);
  if (!Number.isFinite(matmulSync("Q8_0", blocks, 64, numbers.subarray(0, 64))[0])) differences.push("Q8_0");

  const { type, columns, rows, activations } = LARGE;
  const large = matmulSync(type, quantizeSync(type, vectors((rows * columns) / 3)), columns, vectors(columns), {
    activations,
  });
  if (!sameBits(large, input.large)) differences.push("a large product");

  const aborted = AbortSignal.abort(new Error("enough"));
  const half = new Blob([bytes.subarray(0, bytes.length / 2)]);
  const closed = await openBlob(new Blob([bytes]));
  const [tensor] = closed.tensors.values();
  closed.close();
  const errors = {
    magic: await codeOf(() => parse(new Uint8Array(64))),
    argument: await codeOf(() => parse("model.gguf" as never)),
    blob: await codeOf(() => openBlob({} as never)),
    empty: await codeOf(() => openBlob(new Blob([]))),
    truncated: await codeOf(() => openBlob(half)),
    aborted: await codeOf(() => openBlob(half, { signal: aborted })),
    missing: await codeOf(() => openRemote(new URL("/missing.gguf", input.url))),
    closed: await codeOf(() => tensor!.dequantize()),
    type: await codeOf(() => quantizeSync("Q8_1" as never, numbers)),
    safetensors: await codeOf(() => openSafetensors(half)),
  };
  const globals = ["process", "Buffer", "require", "global"].filter((name) => name in globalThis);
  return {
    globals,
    isa: cpu().isa,
    threads,
    types: Object.keys(ggmlTypes),
    compared,
    safetensors,
    differences,
    errors,
  };
}

/**
 * Run by itself, with the kernels that the environment names: continues a text with the model whose path is its argument,
 * with one and two threads, and prints the tokens and a digest of all logits as JSON.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { cpu, parse } from "gguf-native";
import { Llama } from "../../examples/llama/model";
import { topKSampler } from "../../examples/llama/write";
import { LLAMA_PROMPT, type LlamaRun, WRITTEN } from "./llama-run";

const file = parse(readFileSync(process.argv[2] as string));
const runs: LlamaRun[] = [];
for (const activations of ["int8", "f32"] as const) {
  for (const threads of [1, 2]) {
    const llama = Llama.load(file, { activations, threads });
    const sample = topKSampler(40, 7);
    const cache = llama.createCache(LLAMA_PROMPT.length + WRITTEN);
    const digest = createHash("sha256");
    const tokens: number[] = [];
    for (let next = LLAMA_PROMPT; ; next = tokens.slice(-1)) {
      const logits = llama.forward(next, cache);
      digest.update(new Uint8Array(logits.buffer, logits.byteOffset, logits.byteLength));
      tokens.push(sample(logits));
      if (tokens.length === WRITTEN) break;
    }
    runs.push({ activations, threads, tokens, digest: digest.digest("hex") });
  }
}
file.close();
console.log(JSON.stringify({ isa: cpu().isa, runs }));

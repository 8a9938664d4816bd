/** The worker: opens a model, and writes text with it. */
import { parse } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { Llama } from "../llama/model";
import { greedy } from "../llama/sampling";
import { write } from "../llama/write";
import { pause } from "./files.mjs";

/** @param scope the worker's global object */
export function startWorker(scope) {
  /** The model, once there is one. */
  let model;
  /** Whether writing was told to stop. */
  let stopped = false;

  async function open(file) {
    // In memory, where products need not wait for reads.
    const gguf = parse(new Uint8Array(await file.arrayBuffer()));
    model = { llama: Llama.load(gguf), tokenizer: new Tokenizer(gguf.metadata) };
    scope.postMessage({ status: `${file.name} is open.` });
  }

  async function run({ prompt, tokens }) {
    const { llama, tokenizer } = model;
    const begun = [...tokenizer.encode(prompt)];
    const start = performance.now();
    let first = start;
    let count = 0;
    stopped = false;
    for (const { text } of write(llama, tokenizer, begun, tokens, greedy)) {
      if (count++ === 0) first = performance.now();
      scope.postMessage({ text });
      await pause();
      if (stopped) break;
    }
    const rate = (n, ms) => (ms > 0 ? ((1000 * n) / ms).toFixed(1) : "0.0");
    const read = `${begun.length} tokens read at ${rate(begun.length, first - start)} tokens/s`;
    const written = `${count} written at ${rate(count - 1, performance.now() - first)} tokens/s`;
    scope.postMessage({ status: `${read}, ${written}.` });
  }

  scope.onmessage = async ({ data }) => {
    try {
      if (data.stop) stopped = true;
      else if (data.file) await open(data.file);
      else await run(data);
    } catch (error) {
      scope.postMessage({ error: `Error: ${error.message}`, ready: model !== undefined });
    }
  };
}

/** The worker: opens a model, and writes text with it. */
import { Tokenizer } from "gguf-native/tokenizer";
import { parse, useThreads } from "gguf-native/wasm";
import { Llama } from "../llama/model";
import { newReceipt, parseReceipt, record, sha256 } from "../llama/receipt";
import { topKSampler, write } from "../llama/write";
import { pause } from "./files.mjs";

/** @param scope the worker's global object */
export function startWorker(scope) {
  /** The model, once there is one. */
  let model;
  /** That of the last text. */
  let receipt;
  /** Whether writing was told to stop. */
  let stopped = false;

  async function open(file) {
    // In memory, where products need not wait for reads.
    const bytes = await file.arrayBuffer();
    const gguf = parse(new Uint8Array(bytes));
    model = { bytes, gguf, llama: Llama.load(gguf), tokenizer: new Tokenizer(gguf.metadata) };
    // They start while nothing is computed: later, they would only once the first text is written.
    const threads = await useThreads();
    scope.postMessage({ status: `${file.name} is open.${threads > 1 ? ` ${threads} threads compute.` : ""}` });
  }

  /** SHA-256 of the file, which takes some seconds once. */
  async function hashes() {
    model.hashes ??= [await sha256(model.bytes)];
    return model.hashes;
  }

  /** Writes a text, or one again that has the receipt `expected`. */
  async function run(settings, expected) {
    const { gguf, tokenizer } = model;
    const { prompt, count: wanted, topK, seed, activations } = settings;
    const llama = activations === "int8" ? model.llama : Llama.load(gguf, { activations });
    const begun = [...tokenizer.encode(prompt)];
    receipt = newReceipt(settings);
    if (expected) receipt.model = await hashes();
    const start = performance.now();
    let first = start;
    let count = 0;
    stopped = false;
    const written = write(llama, tokenizer, begun, wanted, topKSampler(topK, seed));
    for await (const { text } of record(written, receipt, expected)) {
      if (count++ === 0) first = performance.now();
      scope.postMessage({ text });
      await pause();
      if (stopped) break;
    }
    const rate = (n, ms) => (ms > 0 ? ((1000 * n) / ms).toFixed(1) : "0.0");
    const read = `${begun.length} tokens read at ${rate(begun.length, first - start)} tokens/s`;
    const rest = `${count} written at ${rate(count - 1, performance.now() - first)} tokens/s`;
    const same = expected && !stopped ? " The logits of all tokens have the bits of the receipt." : "";
    scope.postMessage({ status: `${read}, ${rest}.${same}` });
  }

  async function check(text, name) {
    const expected = parseReceipt(text, name);
    scope.postMessage({ begin: expected.prompt });
    await run(expected, expected);
  }

  async function save() {
    receipt.model = await hashes();
    scope.postMessage({
      receipt: `${JSON.stringify(receipt, undefined, 1)}\n`,
      status: "The receipt is saved.",
    });
  }

  scope.onmessage = async ({ data }) => {
    try {
      if (data.stop) stopped = true;
      else if (data.file) await open(data.file);
      else if (data.save) await save();
      else if (data.check !== undefined) await check(data.check, data.name);
      else await run({ ...data, topK: 1, seed: 0, activations: "int8" });
    } catch (error) {
      scope.postMessage({ error: `Error: ${error.message}`, ready: model !== undefined });
    }
  };
}

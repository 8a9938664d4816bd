/** Continues a text with a model. `npm run example -- llama --help`, or in the package: `node examples/llama.js --help` */
import { createHash } from "node:crypto";
import { createReadStream, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { openSync } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { ImportanceMatrix, perplexity, readPieces } from "./llama/measure";
import { Llama } from "./llama/model";
import { newReceipt, parseReceipt, record } from "./llama/receipt";
import { mostProbable, topKSampler, write } from "./llama/write";
import { oneOf, onlyModel, runExample, UsageError, wholeNumber } from "./run";

const USAGE = `Usage: llama MODEL.gguf --prompt TEXT [options]
       llama MODEL.gguf --check RECEIPT
       llama MODEL.gguf --perplexity FILE [options]
       llama MODEL.gguf --imatrix OUT.gguf --text FILE [options]

Continues TEXT, does what a receipt says again and compares, says how well the
model predicts a text, or writes an importance matrix to quantize the model with.
Architectures: llama, qwen2, qwen2moe, qwen3, qwen3moe, gemma3. Tensors can have
any types; they are multiplied where they are in the file.

  --tokens N          number of tokens to add (default 32)
  --top-k K           choose at random among the K most probable tokens (default 1)
  --seed N            seed of the random choices (default 0)
  --next N            list the N most probable next tokens instead
  --receipt FILE      write hashes of the logits, to --check on any machine
  --lora ADAPTER.gguf[,SCALE]
                      add a LoRA adapter, SCALE times (default 1); may be repeated
  --threads N         threads that multiply (default: as many as help)
  --prepare           unpack the matrices before, for texts of a few tokens: it
                      takes memory, a byte for each weight
  --activations TYPE  int8 (default) rounds what weights are multiplied with to 8
                      bits, which is faster; f32 does not
  --context N         for --perplexity: predict the second half of each piece of N
                      tokens, like llama-perplexity -c N (default: every token from
                      all before it); for --imatrix: like llama-imatrix -c N
                      (default 512)
`;

const string = { type: "string" } as const;
type NumberOption = "tokens" | "top-k" | "seed" | "next" | "threads" | "context";

runExample(USAGE, async (args) => {
  const { values: options, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      ...{ prompt: string, tokens: string, "top-k": string, seed: string, next: string },
      ...{ check: string, receipt: string, perplexity: string, imatrix: string, text: string },
      ...{ threads: string, activations: string, context: string },
      lora: { type: "string", multiple: true, default: [] },
      prepare: { type: "boolean", default: false },
    },
  });
  const number = (name: NumberOption, least: number): number | undefined => {
    const text = options[name];
    return text === undefined ? undefined : wholeNumber(`--${name}`, text, least);
  };
  const path = onlyModel(positionals);
  const { prompt = "", check, perplexity: measured, imatrix, text } = options;
  if ([options.prompt, check, measured, imatrix].filter((given) => given !== undefined).length !== 1)
    throw new UsageError("give one of --prompt, --check, --perplexity and --imatrix");
  if ((imatrix === undefined) !== (text === undefined))
    throw new UsageError("--imatrix needs a file with --text, and --text is for --imatrix alone");
  const [next, threads, context] = [number("next", 1), number("threads", 1), number("context", 2)];
  if (context !== undefined && measured === undefined && imatrix === undefined)
    throw new UsageError("--context is for --perplexity and --imatrix");
  const known = (["tokens", "top-k", "seed", "activations", "next"] as const).find((name) => options[name]);
  if (check !== undefined && known !== undefined) throw new UsageError(`--${known} is in the receipt`);
  const given = {
    prompt,
    count: number("tokens", 0) ?? 32,
    topK: number("top-k", 1) ?? 1,
    seed: number("seed", 0) ?? 0,
    activations: oneOf("--activations", options.activations ?? "int8", ["int8", "f32"]),
  };
  const expected = check === undefined ? undefined : parseReceipt(readFileSync(check, "utf8"), check);
  const { activations } = expected ?? given;

  const file = openSync(path);
  const adapters = options.lora.map((argument) => {
    const [, place = argument, scale = "1"] = /^(.+),([-+]?(?:\d+\.?\d*|\.\d+))$/.exec(argument) ?? [];
    return { file: openSync(place), scale: Number(scale) };
  });
  const tokenizer = new Tokenizer(file.metadata);
  const matrix = imatrix === undefined ? undefined : new ImportanceMatrix();
  const llama = Llama.load(file, { activations, threads, adapters, observe: matrix?.add });
  if (options.prepare)
    for (const [, tensor] of file.tensors) if (tensor.shape.length > 1) await tensor.prepare({ threads });
  const source = measured ?? text;
  if (source !== undefined) {
    const tokens = [...tokenizer.encode(readFileSync(source, "utf8"))];
    const [begin] = tokenizer.encode(""); // what each piece begins with, if the model wants it
    const length = context ?? (matrix === undefined ? tokens.length : 512);
    const { contextLength } = llama.config;
    if (length > contextLength)
      throw new Error(
        `${length} tokens at once are more than the model's context of ${contextLength}: choose a --context`,
      );
    const started = performance.now();
    if (matrix === undefined) {
      const { perplexity: found, count } = perplexity(llama, tokens, { context, begin });
      console.log(`perplexity ${found.toFixed(4)} of ${count} tokens`);
    } else {
      const pieces = readPieces(llama, tokens, begin, length);
      await matrix.write(imatrix as string, source, pieces, length);
      console.log(`${imatrix}: the importance of columns in ${pieces * length} tokens`);
    }
    console.error(`${tokens.length} tokens read at ${rate(tokens.length, performance.now() - started)}`);
    return;
  }

  const settings = expected ?? given;
  const tokens = [...tokenizer.encode(settings.prompt)];
  if (next !== undefined) {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const logits = llama.forward(tokens, llama.createCache(tokens.length));
    for (const { token, probability } of mostProbable(logits, next)) {
      const text = JSON.stringify(decoder.decode(tokenizer.bytes(token)));
      console.log(`${String(token).padStart(6)}  ${probability.toExponential(3)}  ${text}`);
    }
    return;
  }
  const written = write(llama, tokenizer, tokens, settings.count, topKSampler(settings.topK, settings.seed));
  const receipt = newReceipt(settings);
  const isRecorded = options.receipt !== undefined || expected !== undefined;
  if (isRecorded) {
    for (const path of file.paths) receipt.model.push(await hashOf(path));
    for (const { file, scale } of adapters)
      receipt.adapters.push({ sha256: await hashOf(file.paths[0] as string), scale });
  }
  const begin = performance.now();
  let read = begin; // when the first token was there
  let added = 0;
  for await (const { text } of isRecorded ? record(written, receipt, expected) : written) {
    if (added === 0) {
      read = performance.now();
      process.stdout.write(settings.prompt);
    }
    process.stdout.write(text);
    added++;
  }
  const end = performance.now();
  process.stdout.write(added === 0 ? `${settings.prompt}\n` : "\n");
  console.error(
    `${tokens.length} tokens read at ${rate(tokens.length, read - begin)}, ` +
      `${added} written at ${rate(Math.max(0, added - 1), end - read)}`,
  );
  if (options.receipt !== undefined) writeFileSync(options.receipt, `${JSON.stringify(receipt, undefined, 1)}\n`);
  if (check !== undefined) console.log(`${check}: the logits of all ${added} tokens have the same bits`);
});

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest("hex");
}

function rate(tokens: number, ms: number): string {
  return `${((tokens / ms) * 1000).toFixed(1)} tokens/s`;
}

/** Continues a text with a llama model. It needs only the GGUF file. `npm run example -- llama --help` */
import { parseArgs } from "node:util";
import { openSync } from "gguf-native";
import { Llama } from "./llama/model";
import { greedy, mostProbable, topKSampler } from "./llama/sampling";
import { Tokenizer } from "./llama/tokenizer";
import { onlyModel, runExample, UsageError, wholeNumber } from "./run";

const USAGE = `Usage: llama MODEL.gguf --prompt TEXT [options]

Continues TEXT. The model must have the architecture llama. Its tensors can have
any types.

  --tokens N    number of tokens to add (default 32)
  --top-k K     choose at random among the K most probable tokens (default:
                always choose the most probable token)
  --seed N      seed of the random choices (default 0)
  --per-use     dequantize weights each time they are used: a little slower, but
                needs no memory except the file's (default: dequantize them
                once, into shared memory)
  --next N      do not continue the text; list the N most probable next tokens
`;

runExample(USAGE, async (args) => {
  const { values: options, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      prompt: { type: "string" },
      tokens: { type: "string", default: "32" },
      "top-k": { type: "string" },
      seed: { type: "string", default: "0" },
      "per-use": { type: "boolean", default: false },
      next: { type: "string" },
    },
  });
  const path = onlyModel(positionals);
  if (options.prompt === undefined) throw new UsageError("give a text to continue with --prompt");
  const wanted = wholeNumber("--tokens", options.tokens, 0);
  const seed = wholeNumber("--seed", options.seed, 0);
  const topK = options["top-k"];
  const sample = topK === undefined ? greedy : topKSampler(wholeNumber("--top-k", topK, 1), seed);
  const next = options.next === undefined ? 0 : wholeNumber("--next", options.next, 1);

  using file = openSync(path);
  const tokenizer = new Tokenizer(file.metadata);
  const prompt = tokenizer.encode(options.prompt);
  if (prompt.length === 0) throw new Error("the prompt is empty");
  const begin = performance.now();
  const llama = await Llama.load(file, { perUse: options["per-use"] });
  const { contextLength } = llama.config;
  if (prompt.length + wanted > contextLength) {
    throw new Error(
      `the prompt has ${prompt.length} tokens; with ${wanted} more it does not fit in the model's context of ${contextLength} tokens`,
    );
  }
  const cache = llama.createCache(prompt.length + wanted);
  const loaded = performance.now();

  let logits = llama.forward(prompt, cache);
  const read = performance.now();
  if (next > 0) {
    for (const { token, probability } of mostProbable(logits, next)) {
      const text = JSON.stringify(tokenizer.decoder()(token));
      console.log(`${String(token).padStart(6)}  ${probability.toExponential(3)}  ${text}`);
    }
    return;
  }

  const decode = tokenizer.decoder();
  process.stdout.write(options.prompt);
  let added = 0;
  while (added < wanted) {
    const token = sample(logits);
    if (tokenizer.isEnd(token)) break;
    process.stdout.write(decode(token));
    added++;
    if (added < wanted) logits = llama.forward([token], cache);
  }
  process.stdout.write("\n");
  const rate = (tokens: number, ms: number): string => `${((tokens / ms) * 1000).toFixed(1)} tokens/s`;
  console.error(
    `weights ready after ${(loaded - begin).toFixed(0)} ms, in ${(llama.residentBytes / 2 ** 20).toFixed(1)} MiB; ` +
      `${prompt.length} tokens read at ${rate(prompt.length, read - loaded)}, ` +
      `${added} written at ${rate(added, performance.now() - read)}`,
  );
});

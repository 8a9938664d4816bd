/** Continues a text with a model of the architecture llama, qwen2 or qwen3. `npm run example -- llama --help` */
import { parseArgs } from "node:util";
import { openSync } from "gguf-native";
// The tokenizers of the command line, in src/tokenizer: not part of the package's interface.
import { Tokenizer } from "#tokenizer";
import { Llama } from "./llama/model";
import { greedy, mostProbable, topKSampler } from "./llama/sampling";
import { onlyModel, runExample, UsageError, wholeNumber } from "./run";

const USAGE = `Usage: llama MODEL.gguf --prompt TEXT [options]

Continues TEXT. The model must have the architecture llama, qwen2 or qwen3. Its
tensors can have any types. They are multiplied where they are in the file, so
the weights need no memory of their own.

  --tokens N    number of tokens to add (default 32)
  --top-k K     choose at random among the K most probable tokens (default:
                always choose the most probable token)
  --seed N      seed of the random choices (default 0)
  --threads N   number of threads that multiply (default: as many as help)
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
      threads: { type: "string" },
      next: { type: "string" },
    },
  });
  const path = onlyModel(positionals);
  if (options.prompt === undefined) throw new UsageError("give a text to continue with --prompt");
  const wanted = wholeNumber("--tokens", options.tokens, 0);
  const seed = wholeNumber("--seed", options.seed, 0);
  const topK = options["top-k"];
  const sample = topK === undefined ? greedy : topKSampler(wholeNumber("--top-k", topK, 1), seed);
  const threads = options.threads === undefined ? undefined : wholeNumber("--threads", options.threads, 1);
  const next = options.next === undefined ? 0 : wholeNumber("--next", options.next, 1);

  using file = openSync(path);
  const tokenizer = new Tokenizer(file.metadata);
  const prompt = tokenizer.encode(options.prompt);
  if (prompt.length === 0) throw new Error("the prompt is empty");
  const llama = Llama.load(file, { threads });
  const { contextLength } = llama.config;
  if (prompt.length + wanted > contextLength) {
    throw new Error(
      `the prompt has ${prompt.length} tokens; with ${wanted} more it does not fit in the model's context of ${contextLength} tokens`,
    );
  }
  const cache = llama.createCache(prompt.length + wanted);
  const begin = performance.now();

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
  let processed = 0; // not the last one
  while (added < wanted) {
    const token = sample(logits);
    if (tokenizer.isEnd(token)) break;
    process.stdout.write(decode(token));
    added++;
    if (added === wanted) break;
    logits = llama.forward([token], cache);
    processed++;
  }
  process.stdout.write("\n");
  const rate = (tokens: number, ms: number): string => `${((tokens / ms) * 1000).toFixed(1)} tokens/s`;
  console.error(
    `${prompt.length} tokens read at ${rate(prompt.length, read - begin)}, ` +
      `${added} written at ${rate(processed, performance.now() - read)}`,
  );
});

/** Continues a text with a model of the architecture llama, qwen2, qwen3 or gemma3. `npm run example -- llama --help` */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { openSync } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { ImportanceMatrix, readPieces } from "./llama/importance";
import { Llama } from "./llama/model";
import { perplexity } from "./llama/perplexity";
import { greedy, mostProbable, topKSampler } from "./llama/sampling";
import { write } from "./llama/write";
import { oneOf, onlyModel, runExample, UsageError, wholeNumber } from "./run";

const USAGE = `Usage: llama MODEL.gguf --prompt TEXT [options]
       llama MODEL.gguf --perplexity FILE [options]
       llama MODEL.gguf --imatrix OUT.gguf --text FILE [options]

Continues TEXT, says how well the model predicts the text in FILE, or writes an
importance matrix of it, to quantize the model with. The model must have the
architecture llama, qwen2, qwen3 or gemma3. Its tensors can have any types. They
are multiplied where they are in the file, so the weights need no memory of
their own.

  --tokens N    number of tokens to add (default 32)
  --top-k K     choose at random among the K most probable tokens (default:
                always choose the most probable token)
  --seed N      seed of the random choices (default 0)
  --threads N   number of threads that multiply (default: as many as help)
  --activations int8|f32
                int8 (default) rounds what weights are multiplied with to 8
                bits, which is faster; f32 does not
  --next N      do not continue the text; list the N most probable next tokens
  --context N   for --perplexity: cut the text into pieces of N tokens and
                predict the second half of each, like llama-perplexity -c N
                (default: predict every token from all before it);
                for --imatrix: read the text in pieces of N tokens, like
                llama-imatrix -c N (default 512)
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
      activations: { type: "string", default: "int8" },
      next: { type: "string" },
      perplexity: { type: "string" },
      context: { type: "string" },
      imatrix: { type: "string" },
      text: { type: "string" },
    },
  });
  const path = onlyModel(positionals);
  const { prompt: begun = "", perplexity: measured } = options;
  if ([options.prompt, measured, options.imatrix].filter((given) => given !== undefined).length !== 1)
    throw new UsageError("give a text to continue with --prompt, or a file with --perplexity or --imatrix");
  if ((options.imatrix === undefined) !== (options.text === undefined))
    throw new UsageError("--imatrix needs a file with --text, and --text is for --imatrix alone");
  const wanted = wholeNumber("--tokens", options.tokens, 0);
  const seed = wholeNumber("--seed", options.seed, 0);
  const topK = options["top-k"];
  const sample = topK === undefined ? greedy : topKSampler(wholeNumber("--top-k", topK, 1), seed);
  const threads = options.threads === undefined ? undefined : wholeNumber("--threads", options.threads, 1);
  const activations = oneOf("--activations", options.activations, ["int8", "f32"]);
  const next = options.next === undefined ? 0 : wholeNumber("--next", options.next, 1);

  const context = options.context === undefined ? undefined : wholeNumber("--context", options.context, 2);
  if (context !== undefined && measured === undefined && options.imatrix === undefined)
    throw new UsageError("--context is for --perplexity and --imatrix");

  using file = openSync(path);
  const tokenizer = new Tokenizer(file.metadata);
  const matrix = options.imatrix === undefined ? undefined : new ImportanceMatrix();
  const observe = matrix?.add.bind(matrix);
  const llama = Llama.load(file, { activations, threads, observe });
  if (matrix !== undefined) {
    const text = options.text as string;
    const size = context ?? 512;
    const { tokens, begin } = tokensOf(tokenizer, text);
    const pieces = readPieces(llama, tokens, begin, size);
    await matrix.write(options.imatrix as string, text, pieces, size);
    console.log(`${options.imatrix}: the importance of columns in ${pieces * size} tokens`);
    return;
  }
  if (measured !== undefined) {
    measure(llama, tokensOf(tokenizer, measured), context);
    return;
  }
  const prompt = [...tokenizer.encode(begun)];
  if (next > 0) {
    for (const { token, probability } of mostProbable(
      llama.forward(prompt, llama.createCache(prompt.length)),
      next,
    )) {
      const text = JSON.stringify(
        new TextDecoder("utf-8", { ignoreBOM: true }).decode(tokenizer.bytes(token)),
      );
      console.log(`${String(token).padStart(6)}  ${probability.toExponential(3)}  ${text}`);
    }
    return;
  }

  const begin = performance.now();
  let read = begin; // when the first token was there
  let added = 0;
  for (const { text } of write(llama, tokenizer, prompt, wanted, sample)) {
    if (added === 0) {
      read = performance.now();
      process.stdout.write(begun);
    }
    process.stdout.write(text);
    added++;
  }
  const end = performance.now();
  process.stdout.write(added === 0 ? `${begun}\n` : "\n");
  console.error(
    `${prompt.length} tokens read at ${rate(prompt.length, read - begin)}, ` +
      `${added} written at ${rate(Math.max(0, added - 1), end - read)}`,
  );
});

interface TextTokens {
  tokens: number[];
  /** The token that each piece of the text begins with, if the model wants one. */
  begin: number | undefined;
}

function tokensOf(tokenizer: Tokenizer, path: string): TextTokens {
  const [begin] = tokenizer.encode("");
  return { tokens: [...tokenizer.encode(readFileSync(path, "utf8"))], begin };
}

/** Prints the perplexity of a text. */
function measure(llama: Llama, { tokens, begin }: TextTokens, context: number | undefined): void {
  const { contextLength } = llama.config;
  const length = context ?? tokens.length;
  if (length > contextLength) {
    throw new Error(
      `${length} tokens at once are more than the model's context of ${contextLength}: choose a --context`,
    );
  }
  const started = performance.now();
  const { perplexity: result, count } = perplexity(llama, tokens, { context, begin });
  console.log(`perplexity ${result.toFixed(4)} of ${count} tokens`);
  console.error(`${tokens.length} tokens read at ${rate(tokens.length, performance.now() - started)}`);
}

function rate(tokens: number, ms: number): string {
  return `${((tokens / ms) * 1000).toFixed(1)} tokens/s`;
}

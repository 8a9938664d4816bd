/** Searches a text by meaning, or prints the vector of a text. `npm run example -- embeddings --help` */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Embedder } from "gguf-native/embeddings";
import { Index, passagesOf } from "./embeddings/search";
import { oneOf, onlyModel, runExample, UsageError, wholeNumber } from "./run";

const USAGE = `Usage: embeddings MODEL.gguf --text FILE --query TEXT [options]
       embeddings MODEL.gguf --embed TEXT [options]

Lists the passages of FILE whose meaning is most similar to TEXT (by cosine
similarity), or prints the vector of TEXT as JSON. Models are those of
gguf-native/embeddings: MiniLM, BGE, E5, Qwen3-Embedding and others.

  --top N        number of passages to list (default 5)
  --prefix TEXT  what the model wants before each passage, such as "passage: ";
                 write what it wants before a query into the query
  --pooling mean|cls|last
                 how the vectors of tokens become one (default: as the metadata
                 of the model says)
  --threads N    number of threads that multiply (default: as many as help)
  --activations int8|f32
                 int8 (default) rounds what quantized weights are multiplied
                 with to 8 bits, which is faster; f32 does not
`;

runExample(USAGE, async (args) => {
  const { values: options, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      text: { type: "string" },
      query: { type: "string" },
      embed: { type: "string" },
      top: { type: "string", default: "5" },
      prefix: { type: "string", default: "" },
      pooling: { type: "string" },
      threads: { type: "string" },
      activations: { type: "string", default: "int8" },
    },
  });
  const path = onlyModel(positionals);
  const { text, query, embed, prefix } = options;
  if ((text === undefined) !== (query === undefined) || (text === undefined) === (embed === undefined))
    throw new UsageError("give a file to search with --text and a --query, or a text to --embed");
  const top = wholeNumber("--top", options.top, 1);
  const threads = options.threads === undefined ? undefined : wholeNumber("--threads", options.threads, 1);
  const activations = oneOf("--activations", options.activations, ["int8", "f32"]);
  const pooling =
    options.pooling === undefined
      ? undefined
      : oneOf("--pooling", options.pooling, ["mean", "cls", "last"] as const);

  using embedder = await Embedder.open(path, { activations, threads, pooling });
  if (embed !== undefined) {
    const [vector] = await embedder.embed([embed]);
    console.log(JSON.stringify(Array.from(vector!)));
    return;
  }
  const passages = passagesOf(readFileSync(text as string, "utf8"));
  const index = new Index(embedder, passages);
  const begin = performance.now();
  await index.build(prefix);
  console.error(`${passages.length} passages in ${((performance.now() - begin) / 1000).toFixed(2)} s`);
  for (const { line, similarity, text: passage } of await index.search(query as string, top))
    console.log(`${similarity.toFixed(4).padStart(7)}  line ${line}: ${passage.replace(/\s+/g, " ")}`);
});

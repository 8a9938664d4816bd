/** Finds the tokens with the most similar meaning, by their embeddings. `npm run example -- embeddings --help` */
import { parseArgs } from "node:util";
import { allocate, type GgufTensor, openSync } from "gguf-native";
import { onlyModel, runExample, UsageError, wholeNumber } from "./run";
import { dot, topK } from "./vectors";

const USAGE = `Usage: embeddings MODEL.gguf --token TOKEN [--token TOKEN ...] [options]

Lists the tokens whose embeddings are most similar to the embedding of TOKEN, or
to the mean of several (by cosine similarity). A TOKEN is a number, or a text as
in the vocabulary ("▁king", "Ġking"). "king" also finds these.

  --top N        number of tokens to list (default 10)
  --tensor NAME  the tensor whose rows to search (default token_embd.weight)
`;

/** Number of rows to dequantize at a time, while the previous ones are searched. */
const ROWS_AT_ONCE = 512;

/** The cosine of the angle between `query` and every row of `tensor`. */
async function cosines(tensor: GgufTensor, query: Float32Array): Promise<Float32Array> {
  const width = query.length;
  const rows = tensor.elementCount / width;
  const result = new Float32Array(rows);
  const queryLength = Math.sqrt(dot(query, 0, query, 0, width));
  // Two outputs in turns. Asynchronous calls write directly into memory from allocate().
  const outputs = [allocate(ROWS_AT_ONCE * width), allocate(ROWS_AT_ONCE * width)];
  const read = (first: number): Promise<Float32Array> => {
    const last = Math.min(rows, first + ROWS_AT_ONCE);
    const out = outputs[(first / ROWS_AT_ONCE) % 2]!.subarray(0, (last - first) * width);
    return tensor.dequantize({ start: first * width, end: last * width, out });
  };

  let pending = read(0);
  for (let first = 0; first < rows; first += ROWS_AT_ONCE) {
    const values = await pending;
    if (first + ROWS_AT_ONCE < rows) pending = read(first + ROWS_AT_ONCE);
    for (let at = 0; at < values.length; at += width) {
      const length = Math.sqrt(dot(values, at, values, at, width));
      result[first + at / width] = dot(values, at, query, 0, width) / (length * queryLength);
    }
  }
  return result;
}

/** The mean of the rows at `indexes`. */
function meanRow(tensor: GgufTensor, indexes: readonly number[]): Float32Array {
  const width = tensor.shape[0]!;
  const rows = tensor.rowsSync(indexes);
  return Float32Array.from({ length: width }, (_, i) => {
    let sum = 0;
    for (let at = i; at < rows.length; at += width) sum += rows[at]!;
    return sum / indexes.length;
  });
}

function findToken(tokens: readonly string[], wanted: string): number {
  if (/^\d+$/.test(wanted)) return Number(wanted);
  const spellings = [wanted, `▁${wanted}`, `Ġ${wanted}`];
  const token = spellings.map((text) => tokens.indexOf(text)).find((index) => index >= 0);
  if (token === undefined) throw new UsageError(`the vocabulary has no token '${wanted}'`);
  return token;
}

runExample(USAGE, async (args) => {
  const { values: options, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      token: { type: "string", multiple: true, default: [] },
      top: { type: "string", default: "10" },
      tensor: { type: "string", default: "token_embd.weight" },
    },
  });
  const path = onlyModel(positionals);
  if (options.token.length === 0) throw new UsageError("give a token to search for with --token");
  const top = wholeNumber("--top", options.top, 1);

  using file = openSync(path);
  const tokens = file.metadata.strings("tokenizer.ggml.tokens") ?? [];
  const query = options.token.map((text) => findToken(tokens, text));
  if (file.tensors.size === 0)
    throw new Error(`${path} has no weights: it is a vocabulary, not a whole model`);
  const tensor = file.tensor(options.tensor);
  const similarity = await cosines(tensor, meanRow(tensor, query));
  for (const token of topK(similarity, top)) {
    console.log(
      `${similarity[token]!.toFixed(4).padStart(7)}  ${token}  ${JSON.stringify(tokens[token] ?? "")}`,
    );
  }
});

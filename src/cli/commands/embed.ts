/** `gguf-native embed`: texts as vectors, and a search by meaning. */
import { readFile } from "node:fs/promises";
import { endianness } from "node:os";
import { extname } from "node:path";
import { buffer } from "node:stream/consumers";
import { counted, escapeText, float32Text, grouped, humanBytes } from "../../describe/text";
import { Embedder, type EmbedOptions } from "../../embeddings";
import type { Output } from "../../writer/write-outputs";
import { expectPositionals, oneOf, parse, UsageError, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import { npyHeader } from "../formats/npy";
import { safetensorsHeader } from "../formats/safetensors";
import type { Progress } from "../output/progress";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, writeFiles } from "../output/write-files";
import { type TextLine, TextLines, VECTOR_FIELD } from "../work/text-lines";
import {
  bestRows,
  cosineWith,
  type Found,
  isMatrixFile,
  MATRIX,
  readMatrix,
  rowsOf,
  rowsOfLines,
} from "../work/vectors";

const HELP = `Usage: gguf-native embed MODEL [FILE] [-o OUT] [options]
       gguf-native embed MODEL [FILE] --query TEXT [--top N] [options]

Turns texts into vectors, which are similar where meanings are. MODEL is an
embedder, such as MiniLM, BGE or E5: a GGUF file or a URL. FILE has a text in
each line; without it, or with -, standard input has. Prints a line of JSON for
each text, with its vector as "${VECTOR_FIELD}"; with -o writes a file.

  -o, --output OUT    a file that ends in .npy (NumPy), .safetensors (a matrix
                      '${MATRIX}') or .jsonl: a vector for each line
  --jsonl             lines are JSON objects (default for .jsonl and .ndjson);
                      those that are printed have all that is in them
  --field NAME        which member of an object is the text (default: text)
  --skip N            leaves out the first N texts
  --prompt NAME       what the model's files say that is put before such texts:
                      document, query or another of their names. TEXT of --query
                      has that of query, if there is one
  --prefix TEXT       what is put before each text of FILE, such as 'passage: '
  --dimensions N      the first N numbers of vectors, of length 1 again, for
                      models that are made for it (Matryoshka)
  --no-normalize      vectors as they are, and not of length 1
  --activations TYPE  int8 (default) or f32: what weights are multiplied with
  --threads N         how many threads compute at most
  --query TEXT        lists the texts that are most similar to TEXT or, where
                      MODEL is a reranker, answer it best. FILE may have
                      vectors: .npy, .safetensors, .jsonl with texts and vectors
  --top N             how many are listed (default 5)
  --json              the list as JSON
${FORCE_HELP}
Memory use depends on the size of FILE, not on that of the vectors. OUT appears
once it is complete; what is printed can be continued with --skip.

Examples:
  gguf-native embed all-minilm-l6-v2-q8_0.gguf notes.txt -o notes.npy
  gguf-native embed model.gguf notes.txt --query 'what is left to do'
  gguf-native embed model.gguf notes.npy --query 'what is left to do' --top 3
  gguf-native embed model.gguf rows.jsonl --field body >>out.jsonl --skip 5000
  echo 'a text' | gguf-native embed model.gguf
`;

const FORMATS = ["npy", "safetensors", "jsonl"] as const;
type Format = (typeof FORMATS)[number];
const ACTIVATIONS = ["int8", "f32"] as const;

const OPTIONS = {
  output: { type: "string", short: "o" },
  jsonl: { type: "boolean" },
  field: { type: "string" },
  skip: { type: "string" },
  prompt: { type: "string" },
  prefix: { type: "string" },
  dimensions: { type: "string" },
  "no-normalize": { type: "boolean" },
  activations: { type: "string", choices: ACTIVATIONS },
  threads: { type: "string" },
  query: { type: "string" },
  top: { type: "string" },
  json: { type: "boolean" },
  ...FORCE_OPTION,
} as const;

/** Texts that are handed over at once. */
const BATCH = 64;
const DEFAULT_TOP = 5;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [place, file = "-"] = expectPositionals(positionals, "MODEL", "[FILE]");
  const { output, query, field, prompt, force } = values;
  const isJsonl = values.jsonl ?? /^\.(jsonl|ndjson)$/i.test(extname(file));
  const isSearch = query !== undefined;
  if (field !== undefined && !isJsonl) throw new UsageError("--field is for --jsonl");
  if (isSearch && output !== undefined) throw new UsageError("either --query or -o");
  if (!isSearch && (values.top !== undefined || values.json)) throw new UsageError("--top and --json are for --query");
  if (!isSearch && isMatrixFile(file)) throw new UsageError(`'${file}' has vectors: --query searches them`);
  const format = output === undefined ? undefined : formatOf(output);
  const top = wholeNumber("--top", values.top, 1, 1e6) ?? DEFAULT_TOP;
  const skip = wholeNumber("--skip", values.skip, 0, Number.MAX_SAFE_INTEGER) ?? 0;
  const dimensions = wholeNumber("--dimensions", values.dimensions, 1, 1e6);
  const threads = wholeNumber("--threads", values.threads, 1, 1024);
  const activations = oneOf("--activations", values.activations, ACTIVATIONS);
  const options = { dimensions, prompt, normalize: !values["no-normalize"] };

  const embedder = await Embedder.open(place, { activations, threads });
  try {
    const work: Work = { embedder, options, prefix: values.prefix ?? "", file, skip, terminal };
    const member = isJsonl ? (field ?? "text") : undefined;
    if (isSearch) printFound(await search(work, member, query, top), query, values.json, terminal);
    else if (output === undefined || format === undefined) await printVectors(work, await textsOf(work, member));
    else await writeVectors(work, await textsOf(work, member), { path: output, format, place, force });
  } finally {
    embedder.close();
  }
  return 0;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** What all ways to embed need. */
interface Work {
  readonly embedder: Embedder;
  readonly options: EmbedOptions;
  /** Put before each text of the file. */
  readonly prefix: string;
  /** The file of texts or vectors, - for standard input. */
  readonly file: string;
  readonly skip: number;
  readonly terminal: Terminal;
}

/** Texts that were checked, and how many they are. */
interface Texts {
  readonly lines: TextLines;
  readonly count: number;
}

type Embedded = TextLine & { vector: Float32Array };

function formatOf(output: string): Format {
  const extension = extname(output).slice(1).toLowerCase();
  const format = FORMATS.find((each) => each === extension);
  if (format !== undefined) return format;
  throw new UsageError(`'${output}' must end in .npy, .safetensors or .jsonl`);
}

/** Reads the file whole, and checks every line before any is embedded. `isMade`: lines must have no vectors yet. */
async function textsOf({ file, skip }: Work, field: string | undefined, isMade = true): Promise<Texts> {
  const isStdin = file === "-";
  // As a stream: one that has nothing yet is waited for.
  const bytes = isStdin ? await buffer(process.stdin) : await readFile(file);
  const lines = new TextLines(isStdin ? "standard input" : file, bytes, field);
  let count = -skip;
  for (const { line, embedding } of lines) {
    if (isMade && embedding !== undefined) throw lines.error(line, `it has a member '${VECTOR_FIELD}' already`);
    count++;
  }
  if (count < 0) throw new UsageError(`--skip ${skip} is more than the ${counted(count + skip, "text")}`);
  return { lines, count };
}

/** Texts with their vectors, in order, under a progress line. While some are used, the next ones are embedded. */
function withEmbedded<T>(
  { embedder, options, prefix, file, skip, terminal }: Work,
  { lines, count }: Texts,
  use: (batches: AsyncIterable<readonly Embedded[]>, progress: Progress) => Promise<T>,
  embed = (some: readonly string[]): Promise<Float32Array[]> => embedder.embed(some, options),
): Promise<T> {
  const source = lines[Symbol.iterator]();
  for (let i = 0; i < skip; i++) source.next();
  const next = async (): Promise<Embedded[]> => {
    const batch = Array.from({ length: BATCH }, () => source.next().value ?? []).flat();
    const texts = batch.map(({ text }) => prefix + text);
    const vectors = await embed(texts);
    return batch.map((line, i) => ({ ...line, vector: vectors[i] as Float32Array }));
  };
  async function* batches(progress: Progress): AsyncGenerator<Embedded[], void, undefined> {
    for (let ahead = next(); ; ) {
      const batch = await ahead;
      if (batch.length === 0) return;
      ahead = next();
      // Where the work ends before, nobody waits for them.
      ahead.catch(() => undefined);
      progress.advance(batch.length);
      yield batch;
    }
  }
  return terminal.withProgress(
    file === "-" ? "standard input" : file,
    count,
    (progress) => use(batches(progress), progress),
    "steps",
  );
}

async function printVectors(work: Work, texts: Texts): Promise<void> {
  await withEmbedded(work, texts, async (batches, progress) => {
    for await (const batch of batches) {
      progress.end();
      await work.terminal.printLines(batch.map(jsonLine));
    }
  });
}

/** A line of JSON: the one that was read, or the text, and the vector after it. */
function jsonLine({ text, json, vector }: Embedded): string {
  const object = json ?? JSON.stringify({ text });
  const numbers = `"${VECTOR_FIELD}":[${Array.from(vector, float32Text).join(",")}]`;
  return `${object.slice(0, object.lastIndexOf("}")).trimEnd()},${numbers}}`;
}

async function writeVectors(
  work: Work,
  texts: Texts,
  to: { path: string; format: Format; place: string; force: boolean | undefined },
): Promise<void> {
  const { path, format, place, force } = to;
  const length = work.options.dimensions ?? work.embedder.dimensions;
  const shape = [length, texts.count];
  const headers = {
    npy: () => npyHeader("f32", shape),
    safetensors: () => safetensorsHeader("f32", [{ name: MATRIX, shape, elementCount: length * texts.count }]),
    jsonl: () => new Uint8Array(),
  };
  // That of lines of JSON is known at the end only.
  const size = { byteLength: 0 };
  const counts = (bytes: Uint8Array): Uint8Array => {
    size.byteLength += bytes.length;
    return bytes;
  };
  async function* chunks(batches: AsyncIterable<readonly Embedded[]>): AsyncGenerator<Uint8Array, void, undefined> {
    yield counts(headers[format]());
    for await (const batch of batches)
      yield counts(
        format === "jsonl"
          ? Buffer.from(batch.map((each) => `${jsonLine(each)}\n`).join(""))
          : Buffer.concat(batch.map(({ vector }) => littleEndian(vector))),
      );
  }
  const areFiles = await withEmbedded(work, texts, (batches) => {
    const output: Output = Object.assign(size, { path, chunks: chunks(batches) });
    const origin = { model: [place, work.file], isGguf: false };
    return writeFiles(work.terminal, path, [output], origin, force);
  });
  if (!areFiles) return;
  const what = `${counted(texts.count, "vector")} of ${grouped(length)} numbers`;
  work.terminal.print([`${escapeText(path)}: ${what} (${humanBytes(size.byteLength)})`]);
}

function littleEndian(vector: Float32Array): Uint8Array {
  const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  return endianness() === "BE" ? bytes.swap32() : bytes;
}

/** In a matrix, or in lines of JSON with vectors; else in texts, which are embedded now. */
async function search(work: Work, field: string | undefined, query: string, top: number): Promise<Found[]> {
  const { embedder, options, file, skip } = work;
  const queryOf = async (length = options.dimensions): Promise<Float32Array> => {
    if ((options.dimensions ?? length) !== length || (length ?? 1) > embedder.dimensions)
      throw new Error(
        `${file}: its vectors have ${counted(length as number, "number")}, and that of the query would have ${options.dimensions ?? embedder.dimensions}`,
      );
    const prompt = Object.hasOwn(embedder.prompts, "query") ? "query" : undefined;
    return (await embedder.embed([query], { ...options, dimensions: length, prompt }))[0] as Float32Array;
  };
  if (isMatrixFile(file)) {
    const matrix = await readMatrix(file);
    return bestRows([rowsOf(matrix, file, skip)], cosineWith(await queryOf(matrix.dimensions)), top);
  }
  const texts = await textsOf(work, field, false);
  const [first] = texts.lines;
  if (first?.embedding !== undefined) {
    const { length } = first.embedding as ArrayLike<unknown>;
    return bestRows([rowsOfLines(texts.lines, length, skip)], cosineWith(await queryOf(length)), top);
  }
  if (embedder.hasScores) {
    const scores = async (some: readonly string[]): Promise<Float32Array[]> =>
      Array.from(await embedder.score(query, some), (score) => Float32Array.of(score));
    return withEmbedded(work, texts, (batches) => bestRows(batches, (numbers) => numbers[0] as number, top), scores);
  }
  const cosine = cosineWith(await queryOf());
  return withEmbedded(work, texts, (batches) => bestRows(batches, cosine, top));
}

function printFound(found: readonly Found[], query: string, asJson: boolean | undefined, terminal: Terminal): void {
  if (asJson) {
    terminal.printJson({ query, found });
    return;
  }
  const hasTexts = found.some(({ text }) => text !== undefined);
  const right = "right" as const;
  const columns = [
    { title: "score", align: right },
    { title: "line", align: right },
    { title: "text", min: 12 },
  ];
  const rows = found.map(({ line, score, text = "" }) => [score.toFixed(4), grouped(line), escapeText(text)]);
  const shown = hasTexts ? 3 : 2;
  terminal.print([
    ...terminal.table(
      columns.slice(0, shown),
      rows.map((row) => row.slice(0, shown)),
    ),
  ]);
}

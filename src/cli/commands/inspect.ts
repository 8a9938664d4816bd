/** `gguf-native inspect`: what a file holds. */
import { globMatcher } from "../arguments/glob";
import { MODEL_HELP, MODEL_OPTIONS, modelOptions, openPartialModel } from "../arguments/open-model";
import { expectPositionals, parse } from "../arguments/parse";
import type { Command } from "../command";
import { inspectJson } from "../output/inspect-json";
import { inspectLines } from "../output/inspect-text";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native inspect FILE|URL [--tensors] [--metadata] [options]

Shows what a GGUF file holds: a summary, then every tensor, then every metadata
key. Shapes are as stored: the contiguous dimension first. Of a file on a server
only the header is fetched.

  --tensors           only the tensors
  --metadata          only the metadata
  --filter GLOB       only tensors and keys with such names (* ? [a-z])
  --json              everything, exactly: long arrays in full, 64-bit integers
                      as strings, as are the numbers that JSON lacks ("NaN",
                      "Infinity", "-0"); the bytes of text that is not UTF-8 in
                      hexadecimal
${MODEL_HELP}
A file whose tensor data is cut off is shown all the same; the exit code is 1.

Examples:
  gguf-native inspect model.gguf
  gguf-native inspect https://example.com/model.gguf
  gguf-native inspect --tensors --filter '*.attn_?.weight' model.gguf
  gguf-native inspect --json model.gguf | jq '.metadata["general.name"].value'
  gguf-native inspect --json --metadata --filter tokenizer.chat_template \\
    model.gguf | jq -r '.metadata[].value'
`;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, {
    json: { type: "boolean" },
    tensors: { type: "boolean" },
    metadata: { type: "boolean" },
    filter: { type: "string" },
    ...MODEL_OPTIONS,
  });
  const [path] = expectPositionals(positionals, "FILE|URL");
  const all = !values.tensors && !values.metadata;
  const sections = { summary: all, tensors: all || !!values.tensors, metadata: all || !!values.metadata };
  const matches = globMatcher(values.filter ?? "*");
  const { model, cutOff } = await openPartialModel(path, modelOptions(values, [path]));
  const { file } = model;
  try {
    const tensors = Array.from(file.tensors.values()).filter(({ name }) => matches(name));
    const keys = Array.from(file.metadata.keys()).filter(matches);
    const view = { path: model.path, file, sections, tensors, keys };
    if (values.json) await terminal.printJsonPieces(inspectJson(view));
    else terminal.print(inspectLines(view, terminal));
  } finally {
    file.close();
  }
  if (cutOff === undefined) return 0;
  terminal.complain(cutOff.message);
  return 1;
}

export const command: Command = { help: HELP, run };

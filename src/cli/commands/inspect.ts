/** `gguf-native inspect`: what a file holds. */

import { globMatcher } from "../../base/glob";
import { memoryUse } from "../../describe/memory";
import type { GgufError } from "../../index";
import { isRepository } from "../../source/hub";
import { isFolderOfModels } from "../arguments/find-models";
import { MODEL_HELP, MODEL_OPTIONS, modelOptions, type OpenedModel, withPartialModel } from "../arguments/open-model";
import { expectPositionals, parse, UsageError, wholeNumber } from "../arguments/parse";
import type { Command } from "../command";
import { inspectJson } from "../output/inspect-json";
import { inspectReport } from "../output/inspect-report";
import { listedWhere, MOST_ARRANGED } from "../output/listed";
import { markdownLines } from "../output/report-markdown";
import { reportLines } from "../output/report-text";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native inspect FILE|URL... [options]

Shows what a GGUF file holds: a summary, then every metadata key, then every
tensor, where blocks that hold the same tensors share a line. Shapes are as
stored: the contiguous dimension first. The command fetches only the header of
a URL. FILE - is standard input: the command reads only its header.
Several files, or a folder, are a table with a line for each model, and so are
the GGUF files of a repository, hf://OWNER/NAME.

  --tensors           only the tensors, every one of them
  --offsets           the same with the byte where each begins in its file
  --metadata          only the metadata
  --memory            only what the model takes to run: its weights by type, and
                      the cache of keys and values as f16 and as q8_0
  --context N         the tokens that the cache is for; the default is what the
                      model was made for
  --filter GLOB       only tensors and keys with such names (* ? [a-z])
  --picture OUT       an SVG picture of the model, too: layers across, kinds of
                      tensors down, coloured by type
  --force             replaces OUT where it exists already
  --markdown          the same as Markdown, for a model card
  --json              everything, exactly: long arrays in full, 64-bit integers
                      as strings, as are the numbers that JSON lacks ("NaN",
                      "Infinity", "-0"); the bytes of text that is not UTF-8 in
                      hexadecimal
${MODEL_HELP}
A file whose tensor data is cut off is shown all the same; the exit code is 1.

Examples:
  gguf-native inspect model.gguf
  gguf-native inspect hf://ggml-org/models/tinyllamas/stories260K.gguf
  gguf-native inspect models/
  zstd -dc model.gguf.zst | gguf-native inspect -
  gguf-native inspect --tensors --filter '*.attn_?.weight' model.gguf
  gguf-native inspect --memory --context 32768 model.gguf
  gguf-native inspect --markdown model.gguf >model.md
  gguf-native inspect model.gguf --picture model.svg
  gguf-native inspect --json model.gguf | jq '.metadata["general.name"].value'
  gguf-native inspect --json --metadata --filter tokenizer.chat_template \\
    model.gguf | jq -r '.metadata[].value'
`;

const OPTIONS = {
  tensors: { type: "boolean" },
  offsets: { type: "boolean" },
  metadata: { type: "boolean" },
  memory: { type: "boolean" },
  context: { type: "string" },
  filter: { type: "string" },
  picture: { type: "string" },
  force: { type: "boolean" },
  markdown: { type: "boolean" },
  json: { type: "boolean" },
  ...MODEL_OPTIONS,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const paths = expectPositionals(positionals, "FILE|URL...");
  if (values.context !== undefined && !values.memory) throw new UsageError("--context is for --memory");
  if (values.markdown && values.json) throw new UsageError("either --markdown or --json");
  const context = wholeNumber("--context", values.context, 1, 2 ** 31);
  const [path = "", ...others] = paths;
  if (others.length > 0 || isFolderOfModels(path)) {
    const { json, header, "no-splits": noSplits, ...rest } = values;
    const [option] = Object.keys(rest);
    if (option !== undefined) throw new UsageError(`--${option} is for one model`);
    const { listModels } = await import("../output/models-list.js");
    return listModels(paths, modelOptions(values, paths), !!json, terminal);
  }
  if (isRepository(path) && Object.keys(values).every((name) => name === "json" || name === "header")) {
    const { headers } = modelOptions(values, paths);
    const { listRepository } = await import("../../source/hub-listing.js");
    const { modelsAmong, printRepository } = await import("../output/repository-list.js");
    const models = modelsAmong(await listRepository(path, new Headers(headers)));
    // One without GGUF files may be a model of safetensors.
    if (models.length > 0) {
      await printRepository(path, models, !!values.json, terminal);
      return 0;
    }
  }
  if (values.offsets) values.tensors = true;
  const all = !values.tensors && !values.metadata && !values.memory;
  const sections = { summary: all, tensors: all || !!values.tensors, metadata: all || !!values.metadata };
  const matches = values.filter === undefined ? undefined : globMatcher(values.filter);
  const show = async (opened: OpenedModel, cutOff: GgufError | undefined): Promise<number> => {
    const { file, path: shown } = opened;
    if (values.picture !== undefined) {
      const { writeModelPicture } = await import("../output/model-svg.js");
      await writeModelPicture(values.picture, opened, values.force, terminal);
    }
    const tensors = listedWhere(
      () => file.tensors.values(),
      file.tensors.size,
      matches && (({ name }) => matches(name)),
    );
    const keys = listedWhere(() => file.metadata.keys(), file.metadata.size, matches);
    const memory = values.memory ? memoryUse(file, context) : undefined;
    // Whoever asks for certain tensors wants to see them. To be grouped, all are kept in memory.
    const isGrouped = !values.tensors && values.filter === undefined && tensors.count <= MOST_ARRANGED;
    const view = { path: shown, file, sections, memory, tensors, keys, isGrouped, offsets: !!values.offsets };
    if (values.json) await terminal.printJsonPieces(inspectJson(view));
    else if (values.markdown) await terminal.printLines(markdownLines(inspectReport(view, terminal)));
    else await terminal.printLines(reportLines(inspectReport(view, terminal), terminal));
    if (cutOff === undefined) return 0;
    terminal.complain(cutOff.message);
    return 1;
  };
  return withPartialModel(path, values, show, true);
}

export const command: Command = { help: HELP, options: OPTIONS, run };

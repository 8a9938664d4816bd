/** `gguf-native inspect`: what a file holds. For people see inspect-text.ts, for programs inspect-json.ts. */
import {
  GgufError,
  type GgufFile,
  type GgufModel,
  type GgufModelTensor,
  type RemoteGgufFile,
} from "../../index";
import { expectPositionals, parse } from "../args";
import { globMatcher } from "../glob";
import type { Command } from "../main";
import {
  type ModelOptions,
  openModel,
  REMOTE_HELP,
  REMOTE_OPTIONS,
  SPLIT_OPTIONS,
  shownPath,
} from "../model";
import { writeJson } from "../output/inspect-json";
import { report } from "../output/inspect-text";
import { complain, print, printJsonText } from "../output/terminal";

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
  --no-splits         one file of a split model alone
${REMOTE_HELP}
A file whose tensor data is cut off is shown all the same; the exit code is 1.

Examples:
  gguf-native inspect model.gguf
  gguf-native inspect https://example.com/model.gguf
  gguf-native inspect --tensors --filter '*.attn_?.weight' model.gguf
  gguf-native inspect --json model.gguf | jq '.metadata["general.name"].value'
  gguf-native inspect --json --metadata --filter tokenizer.chat_template \\
    model.gguf | jq -r '.metadata[].value'
`;

/** What to show. */
export interface View {
  /** As it may be shown. */
  path: string;
  file: GgufModel<GgufModelTensor>;
  sections: { summary: boolean; tensors: boolean; metadata: boolean };
  /** Those that the filter lets through. */
  tensors: readonly GgufModelTensor[];
  keys: readonly string[];
}

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, {
    json: { type: "boolean" },
    tensors: { type: "boolean" },
    metadata: { type: "boolean" },
    filter: { type: "string" },
    ...SPLIT_OPTIONS,
    ...REMOTE_OPTIONS,
  });
  const [path] = expectPositionals(positionals, "FILE|URL");
  const all = !values.tensors && !values.metadata;
  const sections = { summary: all, tensors: all || !!values.tensors, metadata: all || !!values.metadata };
  const matches = globMatcher(values.filter ?? "*");
  const opening = { splits: !values["no-splits"], headers: values.header };
  const { file, trouble } = await openWhatIsThere(path, opening);
  try {
    const tensors = Array.from<GgufModelTensor>(file.tensors.values()).filter(({ name }) => matches(name));
    const keys = Array.from(file.metadata.keys()).filter(matches);
    const view = { path: shownPath(path), file, sections, tensors, keys };
    if (values.json) writeJson(view, printJsonText);
    else print(report(view));
  } finally {
    file.close();
  }
  if (trouble !== undefined) complain(trouble.message);
  return trouble === undefined ? 0 : 1;
}

export const command: Command = { help: HELP, run };

/** Opens a model even if its tensor data is cut off, and says so. */
async function openWhatIsThere(
  path: string,
  opening: Omit<ModelOptions, "partial">,
): Promise<{ file: GgufFile | RemoteGgufFile; trouble?: GgufError }> {
  try {
    return { file: await openModel(path, { ...opening, partial: false }) };
  } catch (error) {
    if (!(error instanceof GgufError) || error.code !== "ERR_GGUF_TRUNCATED") throw error;
    return { file: await openModel(path, { ...opening, partial: true }), trouble: error };
  }
}

/** Tensors, weights and bytes of each type, the largest first. */
export function typeTotals(
  tensors: Iterable<GgufModelTensor>,
): Map<string, { tensors: number; elements: number; bytes: number }> {
  const totals = new Map<string, { tensors: number; elements: number; bytes: number }>();
  for (const { type, elementCount, byteLength } of tensors) {
    const total = totals.get(type) ?? { tensors: 0, elements: 0, bytes: 0 };
    total.tensors++;
    total.elements += elementCount;
    total.bytes += byteLength;
    totals.set(type, total);
  }
  return new Map([...totals].sort(([, a], [, b]) => (b.bytes || 0) - (a.bytes || 0)));
}

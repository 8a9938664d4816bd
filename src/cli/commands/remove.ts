/** `gguf-native remove`: a model without some of its tensors. */
import { expectPositionals, parse } from "../arguments/parse";
import { selectTensors } from "../arguments/select-tensors";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import {
  CHANGE_OPTIONS,
  changedOutput,
  OUTPUT_HELP,
  REWRITE_HELP,
  REWRITE_OPTIONS,
  rewrite,
  TENSOR_TITLES,
  tensorRow,
} from "../work/rewrite";

const HELP = `Usage: gguf-native remove FILE|URL TENSOR... [options]

Takes tensors out of a model. TENSOR is a name or a glob (* ? [a-z]). The new
file appears once it is complete. With --in-place, other hard links to FILE keep
the old one. Metadata stays as it is ('set --remove' removes keys).

${OUTPUT_HELP}${REWRITE_HELP}
Examples:
  gguf-native remove model.gguf rope_freqs.weight --in-place
  gguf-native remove model.gguf 'mm.*' 'v.*' -o text-only.gguf
  gguf-native remove model.gguf '*.bias' --dry-run
`;

const OPTIONS = { ...CHANGE_OPTIONS, ...REWRITE_OPTIONS } as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, ...patterns] = expectPositionals(positionals, "FILE|URL", "TENSOR...");
  return rewrite(path, changedOutput(path, values), values, terminal, (model) => {
    const removed = selectTensors(model, path, patterns);
    const names = new Map(Array.from(model.tensors.keys(), (name) => [name, name]));
    for (const { name } of removed) names.delete(name);
    return { names, titles: ["removed", ...TENSOR_TITLES.slice(1)], rows: removed.map(tensorRow) };
  });
}

export const command: Command = { help: HELP, options: OPTIONS, run };

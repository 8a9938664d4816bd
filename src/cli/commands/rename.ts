/** `gguf-native rename`: other names for tensors. */
import { globRenamer } from "../../base/glob";
import { escapeText } from "../../describe/text";
import type { GgufModel, GgufModelTensor } from "../../index";
import { expectPositionals, parse, UsageError } from "../arguments/parse";
import { selectTensors } from "../arguments/select-tensors";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { CHANGE_OPTIONS, changedOutput, OUTPUT_HELP, REWRITE_HELP, REWRITE_OPTIONS, rewrite } from "../work/rewrite";

const HELP = `Usage: gguf-native rename FILE|URL TENSOR NAME [TENSOR NAME...] [options]

Gives tensors other names, all at once. TENSOR is a name or a glob (* ? [a-z]).
After a glob each * of NAME becomes what the wildcard of the same number has
matched, a * as little as it can; a backslash takes the meaning from the next
character. If several globs match, the first counts. The new file
appears once it is complete. With --in-place, other hard links to FILE keep the
old one.

${OUTPUT_HELP}${REWRITE_HELP}
Examples:
  gguf-native rename model.gguf output.weight lm_head.weight --in-place
  gguf-native rename model.gguf 'model.layers.*' 'blk.*' --dry-run
  gguf-native rename model.gguf '*.attn_?.weight' '*.*_proj.weight' -o new.gguf
`;

const OPTIONS = { ...CHANGE_OPTIONS, ...REWRITE_OPTIONS } as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const [path, ...words] = expectPositionals(positionals, "FILE|URL", "TENSOR", "NAME", "[NAME...]");
  if (words.length % 2 === 1) throw new UsageError(`missing NAME after '${words.at(-1)}'`);
  return rewrite(path, changedOutput(path, values), values, terminal, (model) => {
    const names = newNames(model, path, words);
    const changed = [...names].filter(([name, to]) => name !== to);
    return { names, titles: ["from", "to"], rows: changed.map((pair) => pair.map(escapeText)) };
  });
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** The new names of all tensors, by the pairs of TENSOR and NAME. */
function newNames(model: GgufModel<GgufModelTensor>, path: string, words: readonly string[]): Map<string, string> {
  const wanted = new Map<string, string>();
  for (let i = 0; i < words.length; i += 2) {
    const [pattern, to] = words.slice(i, i + 2) as [string, string];
    const isName = model.tensors.has(pattern);
    const tensors = selectTensors(model, path, [pattern]);
    const rename = isName ? () => to : renamer(pattern, to);
    for (const { name } of tensors) if (!wanted.has(name)) wanted.set(name, rename(name) as string);
  }
  return new Map(Array.from(model.tensors.keys(), (name) => [name, wanted.get(name) ?? name]));
}

function renamer(pattern: string, to: string): (name: string) => string | undefined {
  try {
    return globRenamer(pattern, to);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

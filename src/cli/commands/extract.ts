/** `gguf-native extract`: some tensors of a model in a file of their own. */
import { blockParts } from "../../describe/blocks";
import { ALIGNMENT_KEY } from "../../file/metadata-keys";
import { SPLIT_KEYS } from "../../file/splits";
import type { GgufModel, GgufModelTensor } from "../../index";
import { keysNamed } from "../arguments/metadata-changes";
import { expectPositionals, indexRange, parse, UsageError } from "../arguments/parse";
import { selectTensors, tensorsWhere } from "../arguments/select-tensors";
import type { Command } from "../command";
import type { Terminal } from "../output/terminal";
import { OUTPUT_OPTION, REWRITE_HELP, REWRITE_OPTIONS, rewrite, TENSOR_TITLES, tensorRow } from "../work/rewrite";

const HELP = `Usage: gguf-native extract FILE|URL TENSOR... -o OUT [options]
       gguf-native extract FILE|URL --layers A:B -o OUT [options]

Writes some tensors of a model to a file of their own, under their names and in
their order, byte for byte. TENSOR is a name or a glob (* ? [a-z]). The
command fetches only the header and these tensors of a URL. OUT appears once it
is complete.

  --layers A:B        the tensors of layers A to B, without B: blk.A.* and so
                      on; 8: is from 8 on, 8 one layer
  --exclude GLOB      leaves tensors out; more than once for more
  --metadata KEY      keeps only these keys: a name or a glob; more than once
                      for more. By default it keeps all; the number of layers
                      stays as it was
  -o, --output OUT    the new file
${REWRITE_HELP}
Examples:
  gguf-native extract model.gguf 'token_embd.*' 'output*' -o ends.gguf
  gguf-native extract model.gguf --layers 0:2 -o first.gguf
  gguf-native extract model.gguf '*.attn_*' --metadata 'general.*' -o attn.gguf
  gguf-native extract hf://OWNER/NAME/model.gguf --layers 0 -o layer0.gguf
`;

const OPTIONS = {
  layers: { type: "string" },
  exclude: { type: "string", multiple: true },
  metadata: { type: "string", multiple: true },
  ...OUTPUT_OPTION,
  ...REWRITE_OPTIONS,
} as const;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const layers = indexRange("--layers", values.layers);
  const [path, ...patterns] = expectPositionals(
    positionals,
    "FILE|URL",
    layers === undefined ? "TENSOR..." : "[TENSOR...]",
  );
  const { output, exclude, metadata: kept } = values;
  if (output === undefined) throw new UsageError("missing --output");
  return rewrite(path, output, values, terminal, (model) => {
    const inLayers = layers === undefined ? [] : tensorsOfLayers(model, path, layers);
    const names = [...patterns, ...inLayers.map(({ name }) => name)];
    const tensors = selectTensors(model, path, names, exclude);
    return {
      names: new Map(tensors.map(({ name }) => [name, name])),
      removedKeys: kept === undefined ? [] : keysBut(model, kept),
      titles: TENSOR_TITLES,
      rows: tensors.map(tensorRow),
    };
  });
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** @throws UsageError where there are none */
function tensorsOfLayers(
  model: GgufModel<GgufModelTensor>,
  path: string,
  { start, end = Number.POSITIVE_INFINITY }: NonNullable<ReturnType<typeof indexRange>>,
): GgufModelTensor[] {
  let last = -1;
  const found = tensorsWhere(model, path, ({ name }) => {
    const number = blockParts(name)?.[1] ?? -1;
    last = Math.max(last, number);
    return number >= start && number < end;
  });
  if (found.length > 0) return found;
  const there = last < 0 ? "the model has no layers" : `the last layer is ${last}`;
  throw new UsageError(`--layers: no tensors are in these layers; ${there}`);
}

/** The keys that no name or glob of `kept` stands for; what the file needs is none of them. */
function keysBut({ metadata }: GgufModel, kept: readonly string[]): string[] {
  const stay = new Set([...kept.flatMap((name) => keysNamed(metadata, name)), ALIGNMENT_KEY, ...SPLIT_KEYS]);
  return Array.from(metadata.keys()).filter((key) => !stay.has(key));
}

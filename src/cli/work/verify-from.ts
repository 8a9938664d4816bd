/** `gguf-native verify --from`: whether a model is what quantizing another one gives. */
import { counted, escapeText, grouped } from "../../describe/text";
import type { Search } from "../../quantize/request";
import { compareQuantized, type TensorOrigin } from "../../quantize-model/compare-blocks";
import { ImportanceMatrix } from "../../quantize-model/importance-matrix";
import { isElsewhere, modelOptions, type OpenedModel, openModel } from "../arguments/open-model";
import type { Terminal } from "../output/terminal";
import { asConverted } from "./as-converted";

export interface VerifyFromValues {
  from: string;
  imatrix?: string | undefined;
  search?: Search | undefined;
  json?: boolean | undefined;
  "no-splits"?: boolean | undefined;
  header?: readonly string[] | undefined;
}

/** Returns the exit code: 0 where each tensor is what quantizing the one of `values.from` to its type gives. */
export async function verifyFrom(path: string, values: VerifyFromValues, terminal: Terminal): Promise<number> {
  const { from, imatrix, search } = values;
  const options = modelOptions(values, imatrix === undefined ? [path, from] : [path, from, imatrix]);
  const opened: OpenedModel[] = [];
  const opening = async (each: string): Promise<OpenedModel> => {
    const model = await openModel(each, options);
    opened.push(model);
    return model;
  };
  let importance: ImportanceMatrix | undefined;
  try {
    const model = await opening(path);
    const base = await asConverted(await opening(from), from, model.file, options, terminal);
    opened.push(base);
    if (imatrix !== undefined) {
      importance = await ImportanceMatrix.open(isElsewhere(imatrix) ? (await opening(imatrix)).file : imatrix);
    }
    const total = Array.from(model.file.tensors.values()).reduce((sum, { byteLength }) => sum + (byteLength || 0), 0);
    const tensors: TensorOrigin[] = [];
    await terminal.withProgress(model.path, total, async (progress) => {
      const compared = compareQuantized(model.file, base.file, importance, search, (count) => progress.advance(count));
      for await (const origin of compared) tensors.push(origin);
    });
    const others = tensors.filter(({ same }) => !same);
    const ok = others.length === 0;
    if (values.json) terminal.printJson({ path: model.path, from: base.path, ok, tensors });
    else report(model.path, base.path, tensors, others, terminal);
    return ok ? 0 : 1;
  } finally {
    await importance?.close();
    for (const { file } of opened) file.close();
  }
}

function report(
  path: string,
  from: string,
  tensors: readonly TensorOrigin[],
  others: readonly TensorOrigin[],
  terminal: Terminal,
): void {
  const isGood = others.length === 0;
  const mark = isGood ? terminal.good("ok ") : terminal.bad("bad");
  const what = isGood
    ? `${counted(tensors.length, "tensor")} made of ${from}`
    : `${grouped(others.length)} of ${counted(tensors.length, "tensor")} not made of ${from}`;
  terminal.print([`${mark}  ${escapeText(path)}  ${escapeText(what)}`]);
  for (const { name, type, from: before, blocks, differentBlocks, problem } of others) {
    const detail =
      problem ??
      `${grouped(differentBlocks)} of ${counted(blocks, "block")} of ${type} ${differentBlocks === 1 ? "is" : "are"} not what ${before} gives`;
    terminal.complain(`${path}: tensor '${name}': ${detail}`);
  }
}

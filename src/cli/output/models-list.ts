/** Several models at a glance, a line each: what `inspect` shows of several files and of folders. */
import { relative } from "node:path";
import { GgufError } from "../../base/errors";
import { stringText } from "../../describe/metadata-text";
import { escapeText, grouped, humanBytes, humanCount } from "../../describe/text";
import { typeTotals } from "../../describe/type-totals";
import { fileTypeName } from "../../file/file-types";
import { numberOf } from "../../file/scalars";
import type { GgufModel, GgufModelTensor } from "../../index";
import { filesIn, isFolderOfModels } from "../arguments/find-models";
import { type OpenModelOptions, openModel, openPartially, shownPath } from "../arguments/open-model";
import { summaryJson } from "./inspect-json";
import type { Column } from "./table";
import type { Terminal } from "./terminal";

/**
 * Prints a table of models, or the same as JSON; says of each that is bad what is wrong with it.
 * @param paths files, URLs and folders
 * @returns the exit code: 1 where one is bad
 */
export async function listModels(
  paths: readonly string[],
  options: OpenModelOptions,
  isJson: boolean,
  terminal: Terminal,
): Promise<number> {
  const [folder] = paths.length === 1 && isFolderOfModels(paths[0] as string) ? paths : [];
  /** In one folder the names are enough. */
  const nameOf = (path: string): string => escapeText(folder === undefined ? path : relative(folder, path));
  const files = paths.flatMap((path) => (isFolderOfModels(path) ? filesIn(path, options.splits) : [path]));
  if (files.length === 0) throw new Error(`${paths.join(", ")}: no GGUF files are here`);
  const summaries: Record<string, unknown>[] = [];
  const rows: string[][] = [];
  const bad: string[] = [];
  const work = async (path: string): Promise<void> => {
    try {
      const { model, cutOff } = await openPartially((partial) => openModel(path, options, partial));
      if (cutOff !== undefined) bad.push(cutOff.message);
      try {
        const error = cutOff === undefined ? {} : { error: cutOff.message };
        if (isJson) summaries.push({ ...summaryJson(model.path, model.file), ...error });
        else rows.push([nameOf(model.path), ...facts(model.file)]);
      } finally {
        model.file.close();
      }
    } catch (error) {
      if (!(error instanceof GgufError)) throw error;
      bad.push(error.message);
      summaries.push({ path: shownPath(path), error: error.message });
      rows.push([nameOf(shownPath(path)), "bad"]);
    }
  };
  await terminal.withProgress(
    paths.join(", "),
    files.length,
    async (progress) => {
      for (const path of files) {
        await work(path);
        progress.advance(1);
      }
    },
    "steps",
  );
  if (isJson) terminal.printJson({ files: summaries });
  else {
    const title = folder === undefined ? [] : [terminal.heading(escapeText(folder))];
    terminal.print([...title, ...terminal.table(columnsOf(terminal), rows, true)]);
  }
  for (const message of bad) terminal.complain(message);
  return bad.length > 0 ? 1 : 0;
}

function columnsOf({ bad, type }: Terminal): Column[] {
  return [
    { title: "file", min: 30 },
    { title: "architecture", min: 12, paint: (text) => (text === "bad" ? bad(text) : text) },
    { title: "parameters", align: "right" },
    { title: "type", paint: type },
    { title: "context", align: "right", drop: 0 },
    { title: "size", align: "right" },
  ];
}

function facts(file: GgufModel<GgufModelTensor>): string[] {
  const { metadata, tensors, byteLength } = file;
  const architecture = stringText(metadata, "general.architecture");
  const context = numberOf(metadata, `${architecture}.context_length`);
  const totals = [...typeTotals(tensors.values())];
  const parameters = totals.reduce((sum, [, { elements }]) => sum + elements, 0);
  const [largest] = totals.sort(([, a], [, b]) => b.elements - a.elements);
  const type = fileTypeName(numberOf(metadata, "general.file_type") ?? Number.NaN) ?? largest?.[0] ?? "-";
  return [
    architecture ?? "-",
    humanCount(parameters),
    type,
    context === undefined ? "-" : grouped(context),
    humanBytes(byteLength),
  ];
}

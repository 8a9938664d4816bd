/** The picture of a model, coloured by type, as a file. */
import { basename } from "node:path";
import { modelPicture, svgText } from "../../describe/model-picture";
import { tensorTable } from "../../describe/tensor-table";
import { escapeText } from "../../describe/text";
import { typeTotals } from "../../describe/type-totals";
import type { OpenedModel } from "../arguments/open-model";
import type { Terminal } from "./terminal";
import { writeSvg } from "./write-files";

export async function writeModelPicture(
  out: string,
  { file, path }: OpenedModel,
  force: boolean | undefined,
  terminal: Terminal,
): Promise<void> {
  const origin = { model: file.paths, isGguf: false };
  const tensors = [...file.tensors.values()];
  const table = tensorTable(tensors, [...typeTotals(tensors).keys()]);
  const picture = modelPicture(table, { title: escapeText(basename(path)) });
  await writeSvg(out, `${svgText(picture)}\n`, origin, force, terminal);
}

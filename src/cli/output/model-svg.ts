/** The picture of a model, as a file. */
import { basename } from "node:path";
import { modelSvg } from "../../describe/model-picture";
import { escapeText } from "../../describe/text";
import { checkReplaced } from "../../writer/replaced-files";
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
  await checkReplaced([out], origin, force ?? false);
  const svg = modelSvg(escapeText(basename(path)), [...file.tensors.values()]);
  await writeSvg(out, svg, origin, force, terminal);
}

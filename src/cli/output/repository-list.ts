/** The GGUF files of a repository, a line for each model: what `inspect hf://OWNER/NAME` shows. */
import { escapeText, grouped, humanBytes } from "../../describe/text";
import { parseFileName } from "../../file/file-name";
import { shardNumber, shardSuffix } from "../../file/shard-names";
import type { RepositoryFile } from "../../source/hub-listing";
import type { Terminal } from "./terminal";

/** A model of a repository: a file, or all files of a split model under the name of the first one. */
interface ListedModel {
  readonly path: string;
  readonly type: string | null;
  files: number;
  size: number;
}

/** The models among the files of a repository, by name. */
export function modelsAmong(files: readonly RepositoryFile[]): ListedModel[] {
  const models = new Map<string, ListedModel>();
  for (const { path, size } of files) {
    if (!/\.gguf$/i.test(path)) continue;
    const count = shardNumber(path)?.count;
    const first = count === undefined ? path : path.slice(0, -shardSuffix(0, 1).length) + shardSuffix(0, count);
    const model = models.get(first) ?? { path: first, type: typeOf(first), files: 0, size: 0 };
    model.files++;
    model.size += size;
    models.set(first, model);
  }
  return [...models.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The type that the name of a file tells: the convention's, or else what looks like one. */
function typeOf(path: string): string | null {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const [looksLike] = /\b(?:I?Q\d\w*|TQ\d\w*|MXFP4\w*|B?F16|F32)(?=[.-])/i.exec(name) ?? [];
  return parseFileName(name)?.encoding ?? looksLike?.toUpperCase() ?? null;
}

/** Prints the models of a repository. */
export async function printRepository(
  url: string,
  models: readonly ListedModel[],
  isJson: boolean,
  terminal: Terminal,
): Promise<void> {
  const repository = url.replace(/\/+$/, "");
  if (isJson) {
    const files = models.map((model) => ({ ...model, url: `${repository}/${model.path}` }));
    terminal.printJson({ path: repository, models: files });
    return;
  }
  const isSplit = models.some(({ files }) => files > 1);
  const columns = [
    { title: "file", min: 30 },
    { title: "type", paint: terminal.type },
    ...(isSplit ? [{ title: "files", align: "right" as const, drop: 0 }] : []),
    { title: "size", align: "right" as const },
  ];
  const rows = models.map(({ path, type, files, size }) => [
    escapeText(path),
    escapeText(type ?? "-"),
    ...(isSplit ? [grouped(files)] : []),
    humanBytes(size),
  ]);
  terminal.print([terminal.heading(escapeText(repository))]);
  await terminal.printLines(terminal.table(columns, rows, true));
  terminal.print(["", `gguf-native inspect ${escapeText(repository)}/FILE   # what one of them holds`]);
}

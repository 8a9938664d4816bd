/** What `extract`, `remove`, `rename` and `convert` have in common: they write a model anew, by a plan. */
import { counted, escapeText, humanBytes, shapeText } from "../../describe/text";
import type { GgufModel, GgufModelTensor } from "../../index";
import { type RewritePlan, rewriteModel } from "../../writer/rewrite-model";
import { checkWriteOptions } from "../../writer/write-options";
import { isElsewhere, MODEL_OPTIONS, modelOptions, openModel, shownPath } from "../arguments/open-model";
import { UsageError } from "../arguments/parse";
import type { Terminal } from "../output/terminal";
import { FORCE_HELP, FORCE_OPTION, interruptible, replacedLine } from "../output/write-files";

/** Options of each of these commands. */
export const REWRITE_OPTIONS = {
  "dry-run": { type: "boolean" },
  json: { type: "boolean" },
  ...FORCE_OPTION,
  header: MODEL_OPTIONS.header,
} as const;

export const OUTPUT_OPTION = { output: { type: "string", short: "o" } } as const;

/** The options of those that change a model. */
export const CHANGE_OPTIONS = { ...OUTPUT_OPTION, "in-place": { type: "boolean" } } as const;

/** What their help says about these options. */
export const REWRITE_HELP = `${FORCE_HELP}  --dry-run           shows what the new file would be, and writes nothing
  --json              the same as JSON, with all tensors
  -H, --header TEXT   sent with requests for a URL; more than once for more
`;

/** What their help says about the new file. */
export const OUTPUT_HELP = `  -o, --output OUT    writes the new file to OUT and leaves FILE as it is; what
                      is on a server, or in several files, needs it
  --in-place          the new file takes the place of FILE
`;

interface RewriteValues {
  readonly "dry-run"?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly force?: boolean | undefined;
  readonly header?: readonly string[] | undefined;
}

/** Where a model that is changed goes: into a file of its own, or where it was. Undefined is the latter. */
export function changedOutput(
  path: string,
  values: RewriteValues & { output?: string | undefined; "in-place"?: boolean | undefined },
): string | undefined {
  const { output, "in-place": inPlace, "dry-run": isDry } = values;
  if (output === undefined && isElsewhere(path)) {
    throw new UsageError("missing --output: what is not a file of its own is only read");
  }
  if (inPlace && output !== undefined) throw new UsageError("either --in-place or --output");
  if (output !== undefined || inPlace || isDry) return output;
  throw new UsageError("missing --output OUT, or --in-place to replace FILE itself");
}

/** What becomes of a model; what is not said stays as it is. */
export interface Changes {
  readonly names?: ReadonlyMap<string, string>;
  readonly removedKeys?: readonly string[];
  readonly byteOrder?: RewritePlan["byteOrder"];
  /** The rows of a table about the change, and the titles of its columns. */
  readonly titles?: readonly string[];
  readonly rows?: readonly (readonly string[])[];
}

/**
 * Writes a model anew, and says what it has.
 * @param output where to; by default in place of the model
 * @param changesOf what becomes of it: an error there leaves everything as it is
 */
export async function rewrite(
  path: string,
  output: string | undefined,
  values: RewriteValues,
  terminal: Terminal,
  changesOf: (model: GgufModel<GgufModelTensor>) => Changes,
): Promise<number> {
  const options = modelOptions(values, [path]);
  const target = output ?? path;
  const isDry = values["dry-run"] ?? false;
  const opened = isElsewhere(path) ? await openModel(path, options) : undefined;
  try {
    const { force } = values;
    const { plan, byteLength, replaces } = await interruptible(terminal, shownPath(path), force, (writing) =>
      rewriteModel(
        opened?.file ?? path,
        target,
        (model) => planOf(model as GgufModel<GgufModelTensor>, changesOf),
        checkWriteOptions(writing),
        isDry,
      ),
    );
    const { tensors, removed, removedKeys, byteOrder, changes } = plan;
    if (values.json) {
      const report = { byteOrder, byteLength, tensors, removed, removedKeys, replaces };
      terminal.printJson({ path: shownPath(path), output: isDry ? null : target, ...report });
      return 0;
    }
    const { titles = [], rows = [] } = changes;
    const columns = titles.map((title, i) => ({ title, ...(i === 0 ? { min: 22 } : {}) }));
    if (rows.length > 0) await terminal.printLines(terminal.table(columns, rows, true));
    const before = tensors.length + removed.length;
    const count = removed.length > 0 ? `${tensors.length} of ${before} tensors` : counted(before, "tensor");
    const facts = [count, humanBytes(byteLength), `${byteOrder}-endian`];
    terminal.print([
      ...(rows.length > 0 ? [""] : []),
      `${escapeText(target)}: ${facts.join(", ")}`,
      ...(isDry ? [...replacedLine(target, replaces, force), "nothing was written"] : []),
    ]);
    return 0;
  } finally {
    opened?.file.close();
  }
}

/** The columns of a table of tensors. */
export const TENSOR_TITLES = ["tensor", "type", "shape", "size"];

export function tensorRow({ name, type, shape, byteLength }: GgufModelTensor): string[] {
  return [escapeText(name), type, shapeText(shape), humanBytes(byteLength)];
}

/** A tensor of the new file, for JSON. */
interface ReportedTensor {
  readonly name: string;
  /** Its name before, where that was another one. */
  readonly from?: string;
  readonly type: string;
  readonly shape: readonly number[];
  readonly byteLength: number;
}

interface ReportedPlan extends RewritePlan {
  readonly changes: Changes;
  readonly tensors: readonly ReportedTensor[];
  /** The names of those that are left out. */
  readonly removed: readonly string[];
}

/** The plan, and what to say of it: the model is closed by then. */
function planOf(
  model: GgufModel<GgufModelTensor>,
  changesOf: (model: GgufModel<GgufModelTensor>) => Changes,
): ReportedPlan {
  const changes = changesOf(model);
  const names = changes.names ?? new Map(Array.from(model.tensors.keys(), (name) => [name, name]));
  const tensors: ReportedTensor[] = [];
  const removed: string[] = [];
  for (const { name, type, shape, byteLength } of model.tensors.values()) {
    const to = names.get(name);
    if (to === undefined) removed.push(name);
    else tensors.push({ name: to, ...(to === name ? {} : { from: name }), type, shape, byteLength });
  }
  const { removedKeys = [], byteOrder = model.byteOrder } = changes;
  return { names, removedKeys, byteOrder, changes, tensors, removed };
}

/** `gguf-native verify`: checks the structure and the values of whole files. */
import type { NotFinite } from "../../decode/statistics";
import { formatWarnings } from "../../describe/format-warnings";
import { counted, escapeText, grouped, humanCount } from "../../describe/text";
import { countNotFiniteRemote } from "../../file/remote-tensor";
import { countNotFiniteLocal, countNotFiniteSync } from "../../file/tensor";
import { type GgufError, type GgufModelTensor, GgufTensor, type RemoteGgufTensor } from "../../index";
import { SEARCHES } from "../../quantize/request";
import { interruptions } from "../../writer/settle";
import {
  isElsewhere,
  MODEL_HELP,
  MODEL_OPTIONS,
  modelOptions,
  type OpenedModel,
  type OpenModelOptions,
  openModel,
  shownPath,
} from "../arguments/open-model";
import { expectPositionals, oneOf, parse, UsageError } from "../arguments/parse";
import { canDequantize } from "../arguments/select-tensors";
import type { Command } from "../command";
import { listedWhere } from "../output/listed";
import type { Progress } from "../output/progress";
import { wrapWhole } from "../output/table";
import type { Terminal } from "../output/terminal";
import { textWidth } from "../output/text-width";
import { lookAtValues, totalCost, type ValueWork } from "../work/look-at-values";

const HELP = `Usage: gguf-native verify FILE|URL... [options]
       gguf-native verify FILE|URL --from BASE [options]

Checks every rule of the format, that all tensor data is there, and that every
weight is a finite number. Says first which files are 'ok' or 'bad', and then on
standard error what is bad. Exits with 1 where a file is broken or holds NaN or
infinite weights, or where a command was killed while it changed the model,
until 'recover' has been run. Changes nothing. Tensors of types that cannot be
turned into numbers are counted but not scanned. Fetches the whole file of a
URL. Only warns where quantized tensors lack their version, keys are
not like a.b_c in ASCII, names of tensors have over 63 bytes, and types or
rotated weights are those of another program.

With --from it checks instead whether FILE is what quantizing BASE gives: of
each tensor, whether its bytes are those of the tensor of BASE in its type. A
folder of safetensors stands for the file that 'convert' makes of it.

  --json              the findings as JSON
  --from BASE         the model, or its URL, that FILE was quantized from
  --imatrix FILE      the importance matrix that it was quantized with
  --search SEARCH     best, where it was quantized with --search best
${MODEL_HELP}
Examples:
  gguf-native verify model.gguf
  gguf-native verify models/*.gguf && echo all good
  gguf-native verify --json model.gguf | jq '.files[].findings'
  gguf-native verify model-q4_k_m.gguf --from model-f16.gguf
`;

const OPTIONS = {
  json: { type: "boolean" },
  from: { type: "string" },
  imatrix: { type: "string" },
  search: { type: "string", choices: SEARCHES },
  ...MODEL_OPTIONS,
} as const;

/** Something wrong with a file. */
interface Finding {
  message: string;
  /** Of a broken file: the code of its error and the byte where the problem is. */
  code?: string | undefined;
  offset?: number | undefined;
  /** Of values: the tensor, and how many of them are not finite. */
  tensor?: string;
  nan?: number;
  infinite?: number;
}

interface Verdict {
  path: string;
  ok: boolean;
  tensors: number;
  values: number;
  /** Names of the tensors whose type cannot be turned into numbers. */
  notScanned: string[];
  findings: Finding[];
  /** What is unusual, and not bad. */
  warnings: string[];
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const { from } = values;
  if (from !== undefined) {
    const [path] = expectPositionals(positionals, "FILE|URL");
    const search = oneOf("--search", values.search, SEARCHES);
    // Loaded when it is needed: it takes the writer's modules along.
    const { verifyFrom } = await import("../work/verify-from.js");
    return verifyFrom(path, { ...values, from, search }, terminal);
  }
  for (const option of ["imatrix", "search"] as const) {
    if (values[option] !== undefined) throw new UsageError(`--${option} goes with --from`);
  }
  const paths = expectPositionals(positionals, "FILE|URL...");
  const options = modelOptions(values, paths);
  const verdicts: Verdict[] = [];
  const opened: Opened[] = [];
  try {
    // All of them first: only then is it known how much there is to do.
    for (const path of paths) opened.push(await open(path, options));
    const total = opened.reduce((sum, { cost }) => sum + cost, 0);
    const label = paths.length === 1 ? shownPath(paths[0] as string) : counted(paths.length, "file");
    await terminal.withProgress(label, total, async (progress) => {
      let end = 0;
      for (const file of opened) {
        await findNotFinite(file, progress);
        // A file that turned out to be broken has left something out, which will not be done later either.
        end += file.cost;
        progress.advanceTo(end);
        verdicts.push(file.verdict);
        if (!values.json) {
          progress.end();
          report(file.verdict, terminal);
        }
      }
    });
  } finally {
    for (const { model } of opened) model?.file.close();
  }
  if (values.json) terminal.printJson({ files: verdicts });
  return verdicts.every(({ ok }) => ok) ? 0 : 1;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

/** A file, with its structure checked. */
interface Opened {
  verdict: Verdict;
  /** Absent where it is broken. */
  model?: OpenedModel;
  /** The tensors that can be turned into numbers. */
  scanned: Iterable<GgufModelTensor>;
  /** What that reads, in bytes. */
  cost: number;
}

const work: ValueWork<GgufModelTensor, NotFinite> = {
  tensor: (tensor) => tensor,
  cost: ({ byteLength }) => byteLength,
  now: (tensor) => countNotFiniteSync(tensor as GgufTensor),
  later: (tensor, options) =>
    tensor instanceof GgufTensor
      ? countNotFiniteLocal(tensor, options)
      : countNotFiniteRemote(tensor as RemoteGgufTensor, options),
};

async function open(path: string, options: OpenModelOptions): Promise<Opened> {
  const verdict: Verdict = {
    path: shownPath(path),
    ok: true,
    tensors: 0,
    values: 0,
    notScanned: [],
    findings: [],
    warnings: [],
  };
  const opened: Opened = { verdict, scanned: [], cost: 0 };
  await finding(verdict, async () => {
    if (!isElsewhere(path)) await lookForChanges(path, verdict);
    opened.model = await openModel(path, options);
    const { tensors } = opened.model.file;
    verdict.tensors = tensors.size;
    for (const tensor of tensors.values()) if (!canDequantize(tensor)) verdict.notScanned.push(tensor.name);
    opened.scanned = listedWhere(() => tensors.values(), tensors.size, canDequantize);
    opened.cost = totalCost(opened.scanned, work);
    for (const warning of formatWarnings(opened.model.file)) {
      verdict.warnings.push(`${verdict.path}: ${warning}`);
    }
  });
  return opened;
}

/** Says what is known of changes that were interrupted, or are under way. */
async function lookForChanges(path: string, { findings, warnings }: Verdict): Promise<void> {
  for (const { holder, hasBegun } of await interruptions(path)) {
    const remedy = `run 'gguf-native recover ${path}'`;
    if (holder !== undefined) warnings.push(`${path}: is being changed by ${holder}`);
    else if (hasBegun) findings.push({ message: `${path}: a change of this model was interrupted: ${remedy}` });
    else warnings.push(`${path}: an interrupted change had not begun: ${remedy} to remove what it left`);
  }
}

/** Scans every tensor that can be turned into numbers, and closes the file. */
async function findNotFinite({ verdict, model, scanned }: Opened, progress: Progress): Promise<void> {
  if (model === undefined) return;
  await finding(verdict, async () => {
    const found: { index: number; finding: Finding }[] = [];
    await lookAtValues(scanned, work, progress, ({ count, nan, infinite }, index, { name: tensor }) => {
      verdict.values += count;
      if (nan + infinite === 0) return;
      const counts = [nan > 0 && counted(nan, "NaN value"), infinite > 0 && counted(infinite, "infinite value")];
      const message = `${model.path}: tensor '${tensor}': ${counts.filter(Boolean).join(", ")}`;
      found.push({ index, finding: { message, tensor, nan, infinite } });
    });
    found.sort((a, b) => a.index - b.index);
    for (const { finding } of found) verdict.findings.push(finding);
  });
  verdict.ok = verdict.findings.length === 0;
  model.file.close();
}

/** Runs a part of the work on a file; an error of the library is a finding. */
async function finding(verdict: Verdict, part: () => Promise<void>): Promise<void> {
  try {
    await part();
  } catch (error) {
    const { message, code, offset } = error as Partial<GgufError>;
    if (message === undefined || !code?.startsWith("ERR_GGUF_")) throw error;
    verdict.findings.push({ message, code, offset });
    verdict.ok = false;
  }
}

/** The verdict, then what is wrong. */
function report(verdict: Verdict, terminal: Terminal): void {
  const { path, ok, findings, warnings } = verdict;
  const mark = ok ? terminal.good("ok ") : terminal.bad("bad");
  const indent = " ".repeat(5);
  const room = terminal.width - indent.length;
  const line = `${escapeText(path)}  ${summary(verdict)}`;
  const lines =
    textWidth(line) <= room ? [line] : [escapeText(path), summary(verdict)].flatMap((part) => wrapWhole(part, room));
  terminal.print(lines.map((text, i) => (i === 0 ? `${mark}  ${text}` : indent + text)));
  for (const { message } of findings) terminal.complain(message);
  for (const warning of warnings) terminal.complain(`warning: ${warning}`);
}

function summary({ tensors, values, notScanned, findings }: Verdict): string {
  const broken = findings.find(({ code }) => code !== undefined);
  // Of a file that is broken there is nothing to count.
  if (broken !== undefined) return BROKEN[broken.code as string] ?? "broken";
  const notFinite = findings.reduce((sum, { nan = 0, infinite = 0 }) => sum + nan + infinite, 0);
  return [
    counted(tensors, "tensor"),
    `${humanCount(values)} values`,
    ...(notFinite > 0 ? [`${grouped(notFinite)} of them not finite`] : []),
    ...(notScanned.length > 0 ? [`${counted(notScanned.length, "tensor")} not scanned`] : []),
  ].join(", ");
}

/** What is said of a file that is not simply broken, by the code of the error. */
const BROKEN: Readonly<Record<string, string>> = {
  ERR_GGUF_OPEN: "cannot be read",
  ERR_GGUF_MAGIC: "not a GGUF file",
  ERR_GGUF_VERSION: "of an unknown version",
  ERR_GGUF_TRUNCATED: "cut off",
  ERR_GGUF_CHANGED: "changed while it was read",
  ERR_GGUF_OUT_OF_MEMORY: "too little memory to check it",
};

/** `gguf-native verify`: checks the structure and the values of whole files. */
import { type GgufError, recover } from "../../index";
import {
  isUrl,
  MODEL_HELP,
  MODEL_OPTIONS,
  modelOptions,
  type OpenedModel,
  type OpenModelOptions,
  openModel,
  shownPath,
} from "../arguments/open-model";
import { expectPositionals, parse } from "../arguments/parse";
import { canDequantize } from "../arguments/select-tensors";
import type { Command } from "../command";
import { recoveryLines } from "../output/recovery-text";
import type { Terminal } from "../output/terminal";
import { counted, escapeText, humanCount } from "../output/text";
import type { NotFinite } from "../work/finite";
import { valueTasks } from "../work/pieces";
import { runTasks } from "../work/run-tasks";

const HELP = `Usage: gguf-native verify FILE|URL... [options]

Checks every rule of the format, that all tensor data is there, and that every
weight is a finite number. Exits with 1 where a file is broken or holds NaN or
infinite weights. Tensors of types that cannot be turned into numbers are
counted but not scanned. The whole file of a URL is fetched. If a command was
killed while it changed the model, its change is finished or taken back first,
as 'recover' does it.

  --json              the findings as JSON
${MODEL_HELP}
Examples:
  gguf-native verify model.gguf
  gguf-native verify models/*.gguf && echo all good
  gguf-native verify --json model.gguf | jq '.files[].findings'
`;

const OPTIONS = { json: { type: "boolean" }, ...MODEL_OPTIONS } as const;

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
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS);
  const paths = expectPositionals(positionals, "FILE|URL...");
  const options = modelOptions(values, paths);
  const verdicts: Verdict[] = [];
  for (const path of paths) {
    const verdict = await verify(path, options, terminal);
    verdicts.push(verdict);
    if (!values.json) report(verdict, terminal);
  }
  if (values.json) terminal.printJson({ files: verdicts });
  return verdicts.every(({ ok }) => ok) ? 0 : 1;
}

export const command: Command = { help: HELP, options: OPTIONS, run };

async function verify(path: string, options: OpenModelOptions, terminal: Terminal): Promise<Verdict> {
  const verdict: Verdict = {
    path: shownPath(path),
    ok: true,
    tensors: 0,
    values: 0,
    notScanned: [],
    findings: [],
  };
  try {
    if (!isUrl(path)) for (const line of recoveryLines(path, await recover(path))) terminal.complain(line);
    const model = await openModel(path, options);
    try {
      await findNotFinite(model, verdict, terminal);
    } finally {
      model.file.close();
    }
  } catch (error) {
    const { message, code, offset } = error as Partial<GgufError>;
    if (message === undefined || !code?.startsWith("ERR_GGUF_")) throw error;
    verdict.findings.push({ message, code, offset });
  }
  verdict.ok = verdict.findings.length === 0;
  return verdict;
}

/** Scans every tensor that can be turned into numbers. */
async function findNotFinite(model: OpenedModel, verdict: Verdict, terminal: Terminal): Promise<void> {
  const all = Array.from(model.file.tensors.values());
  verdict.tensors = all.length;
  verdict.notScanned = all.filter((tensor) => !canDequantize(tensor)).map(({ name }) => name);
  const tasks = valueTasks(all.filter(canDequantize));
  const results = await runTasks(terminal, "finite", undefined, [model], tasks);
  const found = new Map<string, NotFinite>();
  tasks.forEach(({ name, start, end }, i) => {
    verdict.values += end - start;
    const { nan, infinite } = results[i] as NotFinite;
    if (nan + infinite === 0) return;
    const before = found.get(name) ?? { nan: 0, infinite: 0 };
    found.set(name, { nan: before.nan + nan, infinite: before.infinite + infinite });
  });
  for (const [tensor, { nan, infinite }] of found) {
    const message = `${model.path}: tensor '${tensor}': ${counted(nan, "NaN value")}, ${counted(infinite, "infinite value")}`;
    verdict.findings.push({ message, tensor, nan, infinite });
  }
}

function report({ path, ok, tensors, values, notScanned, findings }: Verdict, terminal: Terminal): void {
  for (const { message } of findings) terminal.complain(message);
  if (findings.some(({ code }) => code !== undefined)) return; // there is nothing to count
  const skipped = notScanned.length > 0 ? `, ${counted(notScanned.length, "tensor")} not scanned` : "";
  const checked = `${counted(tensors, "tensor")}, ${humanCount(values)} values${skipped}`;
  const mark = ok ? terminal.good("ok ") : terminal.bad("bad");
  terminal.print([`${mark}  ${escapeText(path)}  ${checked}`]);
}

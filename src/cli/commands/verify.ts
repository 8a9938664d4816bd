/** `gguf-native verify`: structure and values of whole files. */
import { type GgufError, type GgufFile, openSync } from "../../index";
import { expectPositionals, parse } from "../args";
import type { Command } from "../main";
import { SPLIT_OPTIONS } from "../model";
import { bad, complain, good, print, printJson } from "../output/terminal";
import { counted, escapeText, humanCount } from "../output/text";
import { canDequantize } from "../select";
import type { NotFinite } from "../work/finite";
import type { Source } from "../work/pieces";
import { overParts } from "../work/statistics";

const HELP = `Usage: gguf-native verify FILE... [--json] [--no-splits]

Checks every rule of the format, that all tensor data is there, and that every
weight is a finite number, on all cores. Exits with 1 where a file is broken or
holds NaN or infinite weights. Tensors of types that cannot be turned into
numbers are counted but not scanned.

  --json        the findings as JSON
  --no-splits   one file of a split model alone

Examples:
  gguf-native verify model.gguf
  gguf-native verify models/*.gguf && echo all good
  gguf-native verify --json model.gguf | jq '.files[].findings'
`;

/** Something wrong with a file. */
interface Finding {
  message: string;
  /** Of a file that is broken: its error's code and the byte where the trouble is. */
  code?: string | undefined;
  offset?: number | undefined;
  /** Of values: the tensor, and how many of them are no finite numbers. */
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

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, { json: { type: "boolean" }, ...SPLIT_OPTIONS });
  const verdicts: Verdict[] = [];
  for (const path of expectPositionals(positionals, "FILE...")) {
    const verdict = await verify({ path, splits: !values["no-splits"] });
    verdicts.push(verdict);
    if (!values.json) report(verdict);
  }
  if (values.json) printJson({ files: verdicts });
  return verdicts.every(({ ok }) => ok) ? 0 : 1;
}

export const command: Command = { help: HELP, run };

async function verify(source: Source): Promise<Verdict> {
  const { path, splits } = source;
  const verdict: Verdict = { path, ok: true, tensors: 0, values: 0, notScanned: [], findings: [] };
  try {
    const file = openSync(path, { splits });
    try {
      await scan(file, source, verdict);
    } finally {
      file.close();
    }
  } catch (error) {
    const { message, code, offset } = error as Partial<GgufError>;
    if (message === undefined || !code?.startsWith("ERR_GGUF_")) throw error;
    verdict.findings.push({ message, code, offset });
  }
  verdict.ok = verdict.findings.length === 0;
  return verdict;
}

/** Scans every tensor that can be. */
async function scan(file: GgufFile, source: Source, verdict: Verdict): Promise<void> {
  const all = Array.from(file.tensors.values());
  verdict.tensors = all.length;
  verdict.notScanned = all.filter((tensor) => !canDequantize(tensor)).map(({ name }) => name);
  const { path } = source;
  const found = new Map<string, NotFinite>();
  await overParts<NotFinite>(path, "finite", source, all.filter(canDequantize), (part, { nan, infinite }) => {
    verdict.values += part.end - part.start;
    if (nan + infinite === 0) return;
    const before = found.get(part.name) ?? { nan: 0, infinite: 0 };
    found.set(part.name, { nan: before.nan + nan, infinite: before.infinite + infinite });
  });
  for (const [tensor, { nan, infinite }] of found) {
    const message = `${path}: tensor '${tensor}': ${counted(nan, "NaN value")}, ${counted(infinite, "infinite value")}`;
    verdict.findings.push({ message, tensor, nan, infinite });
  }
}

function report({ path, ok, tensors, values, notScanned, findings }: Verdict): void {
  for (const { message } of findings) complain(message);
  if (findings.some(({ code }) => code !== undefined)) return; // there is nothing to count
  const skipped = notScanned.length > 0 ? `, ${counted(notScanned.length, "tensor")} not scanned` : "";
  const checked = `${counted(tensors, "tensor")}, ${humanCount(values)} values${skipped}`;
  print([`${ok ? good("ok ") : bad("bad")}  ${escapeText(path)}  ${checked}`]);
}

/** Lists of digests, as `hash` prints them and `hash --check` reads them. */
import { counted, escapeText } from "../../describe/text";
import type { Listed } from "../output/listed";
import { textWidth } from "../output/text-width";

/** The digests of one model. */
export interface ModelDigests {
  /** As it may be shown. */
  path: string;
  /** Of the whole. */
  sha256: string;
  /** `sha256` is null where the data could not be hashed. */
  tensors: Iterable<{ readonly tensor: { readonly name: string }; readonly sha256: string | null }>;
  /** The names of those. */
  notHashed: Listed<string>;
}

const NOT_HASHED = "not hashed";
const HEX_LENGTH = 64;

/** The lines of a model; with `wholeOnly` the last one alone. */
export function* digestLines(
  { path, sha256, tensors, notHashed }: ModelDigests,
  wholeOnly: boolean,
): Generator<string, void, undefined> {
  for (const { tensor, sha256 } of wholeOnly ? [] : tensors) {
    yield `${sha256 ?? NOT_HASHED.padEnd(HEX_LENGTH)}  ${escapeText(tensor.name)}`;
  }
  const remarks = wholeOnly ? [] : ["whole"];
  if (notHashed.count > 0) remarks.push(`without the data of ${counted(notHashed.count, "tensor")}`);
  const remark = remarks.length > 0 ? ` (${remarks.join(", ")})` : "";
  yield `${sha256}  ${escapeText(path)}${remark}`;
}

/** The same for a terminal: where a line is too long for it, each digest stands under its name. */
export function* shownLines(digests: ModelDigests, wholeOnly: boolean, width: number): Iterable<string> {
  let stacks = false;
  for (const line of digestLines(digests, wholeOnly)) stacks ||= textWidth(line) > width;
  for (const line of digestLines(digests, wholeOnly)) {
    yield* stacks ? [line.slice(HEX_LENGTH + 2), `  ${line.slice(0, HEX_LENGTH)}`.trimEnd()] : [line];
  }
}

/** What a list says of one model. */
export interface ExpectedDigests {
  /** As the list has it, escaped. */
  readonly path: string;
  readonly whole: string;
  /** The lines about tensors; undefined where the list is about whole models only. */
  readonly tensors: readonly string[] | undefined;
}

const LINE = /^([0-9a-f]{64}|not hashed {54}) {2}(.+)$/i;
const WHOLE = / \(whole(, without the data of [\d,]+ tensors?)?\)$/;
const INCOMPLETE = / \(without the data of [\d,]+ tensors?\)$/;

/**
 * Reads a list: of whole models only, or with the lines of its tensors before each.
 * @throws Error for a line that is none of a list, and for tensors that no model follows
 */
export function parseDigests(text: string): ExpectedDigests[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  const parsed = lines.map((line, i): [line: string, digest: string, name: string] => {
    const [, digest, name] = LINE.exec(line) ?? [];
    if (digest === undefined || name === undefined) {
      throw new Error(`line ${i + 1} is none that 'gguf-native hash' prints: a digest, two spaces, a name`);
    }
    return [line, digest.toLowerCase(), name];
  });
  const hasTensors = parsed.some(([, , name]) => WHOLE.test(name));
  if (!hasTensors) {
    return parsed.map(([, whole, name]) => ({
      path: name.replace(INCOMPLETE, ""),
      whole,
      tensors: undefined,
    }));
  }
  const models: ExpectedDigests[] = [];
  let tensors: string[] = [];
  for (const [, digest, name] of parsed) {
    if (!WHOLE.test(name)) {
      tensors.push(`${digest}  ${name}`);
      continue;
    }
    models.push({ path: name.replace(WHOLE, ""), whole: digest, tensors });
    tensors = [];
  }
  if (tensors.length > 0) throw new Error("it ends without the line of the whole model, which comes last");
  return models;
}

/** The names of the tensors whose lines differ, or that only one side has; escaped. */
export function differingTensors(expected: readonly string[], found: readonly string[]): string[] {
  const names = (lines: readonly string[], others: ReadonlySet<string>): string[] =>
    lines.flatMap((line) => (others.has(line) ? [] : [line.slice(HEX_LENGTH + 2)]));
  return [...new Set([...names(expected, new Set(found)), ...names(found, new Set(expected))])];
}

/** Parses and checks the arguments of commands. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { didYouMean } from "../../base/suggest";
import { schemeOf } from "../../source/url";

/** Wrong usage: exit code 2. */
export class UsageError extends Error {}

/** An option as Node parses it, and what is known of its value. */
export type Option = NonNullable<ParseArgsConfig["options"]>[string] & {
  /** The words that it takes. */
  readonly choices?: readonly string[];
};

/** The options of a command by name, without the dashes. */
export type OptionTable = Readonly<Record<string, Option>>;

type Parsed<O extends OptionTable> = ReturnType<typeof parseArgs<{ options: O; allowPositionals: true; strict: true }>>;

/** What every command has beside its own options. */
export const HELP_OPTION = { help: { type: "boolean", short: "h" } } as const;

/** Parses the arguments of one command. */
export function parse<const O extends OptionTable>(args: readonly string[], options: O): Parsed<O> {
  const all = { ...options, ...HELP_OPTION };
  try {
    return parseArgs({ args: [...args], options: all, allowPositionals: true, strict: true }) as Parsed<O>;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // Node explains at length how to pass an argument that begins with a dash: keep its first sentence.
    const what = (text.split(/[.\n] ?(?=To specify|Did you)/)[0] ?? text).replace(/\.$/, "");
    if ((error as NodeJS.ErrnoException).code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION")
      throw new UsageError(inOurWords(what));
    const name = /'--(.*)'$/s.exec(what)?.[1] ?? "";
    const hint = didYouMean(name, Object.keys(all), (found) => `--${found}`);
    throw new UsageError(what + (hint || "; an argument that begins with a dash goes last, after --"));
  }
}

/** What Node says of an option's value, as this command line says such things. */
function inOurWords(what: string): string {
  const [, option, said] = /^Option '(?:-\w, )?(--?[\w-]+)(?: <value>)?' (.*)$/s.exec(what) ?? [];
  if (option === undefined || said === undefined) return what;
  if (said.startsWith("argument missing")) return `${option} needs a value`;
  if (said.startsWith("argument is ambiguous"))
    return `${option} needs a value; one that begins with a dash is written ${option}=VALUE`;
  return said.startsWith("does not take") ? `${option} takes no value` : what;
}

type Positionals<N extends readonly string[]> = N extends readonly [
  infer First extends string,
  ...infer Rest extends readonly string[],
]
  ? First extends `${string}...${string}`
    ? string[]
    : [First extends `[${string}` ? string | undefined : string, ...Positionals<Rest>]
  : [];

/**
 * Checks the number of positional arguments against their names and returns them. A name in brackets may be absent, a
 * last name ending in "..." repeats. What is called FILE, rather than FILE|URL, must be on this machine.
 */
export function expectPositionals<const N extends readonly string[]>(
  positionals: readonly string[],
  ...names: N
): Positionals<N> {
  const needed = names.filter((name) => !name.startsWith("["));
  if (positionals.length < needed.length) throw new UsageError(`missing ${needed[positionals.length]}`);
  const repeats = names.at(-1)?.includes("...");
  if (!repeats && positionals.length > names.length) {
    throw new UsageError(`unexpected argument '${positionals[names.length]}'`);
  }
  positionals.forEach((value, i) => {
    if (
      /^\[?FILE(\.\.\.)?\]?$/.test(names[Math.min(i, names.length - 1)] as string) &&
      (schemeOf(value) ?? "file") !== "file"
    ) {
      const how = schemeOf(value) === "ollama" ? `not '${value}'` : `download '${value}' first`;
      throw new UsageError(`this command reads files on this machine only: ${how}`);
    }
  });
  return positionals as readonly string[] as Positionals<N>;
}

/** The value of an option that takes one of a few words. */
export function oneOf<const W extends string>(
  option: string,
  value: string | undefined,
  words: readonly W[],
): W | undefined {
  if (value === undefined || (words as readonly string[]).includes(value)) return value as W | undefined;
  throw new UsageError(`${option} must be ${listed(words)}, not '${value}'${didYouMean(value, words)}`);
}

/** The value of an option that takes a whole number. */
export function wholeNumber(option: string, value: string | undefined, min: number, max: number): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= min && number <= max) return number;
  throw new UsageError(`${option} must be a whole number from ${min} to ${max}, not '${value}'`);
}

/** The value of an option that takes a range: 0:8, :8, 8: (up to the end), or 8 alone. */
export function indexRange(
  option: string,
  text: string | undefined,
): { start: number; end: number | undefined } | undefined {
  if (text === undefined) return undefined;
  const [, first, colon, last] = /^(\d*)(:?)(\d*)$/.exec(text) ?? [];
  const start = Number(first || 0);
  const end = colon === "" ? start + 1 : last === "" ? undefined : Number(last);
  const isEmpty = first === "" && last === "" && colon !== ":";
  if (first === undefined || isEmpty || !Number.isSafeInteger(start) || !Number.isSafeInteger(end ?? 0)) {
    throw new UsageError(`${option} must be a range such as 0:8, :8, 8: or 8, not '${text}'`);
  }
  if (end !== undefined && end <= start) throw new UsageError(`${option} ${text} is empty`);
  return { start, end };
}

/** The value of an option that takes a number of bytes: 4096, 512K, 4GiB (all of 1024), 4GB (of 1000). */
export function byteCount(option: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const match = /^(\d+(?:\.\d+)?) ?([KMGT]?)(i?B)?$/i.exec(value);
  const [, number, unit = "", suffix = ""] = match ?? [];
  const base = suffix.length === 1 ? 1000 : 1024;
  const bytes = Math.floor(Number(number) * base ** " KMGT".indexOf(unit.toUpperCase() || " "));
  if (bytes >= 1 && Number.isSafeInteger(bytes)) return bytes;
  throw new UsageError(`${option} must be a number of bytes such as 500M, 4GB or 4GiB, not '${value}'`);
}

/** "a, b or c" */
export function listed(words: readonly string[], conjunction = "or"): string {
  return words.length === 1 ? `${words[0]}` : `${words.slice(0, -1).join(", ")} ${conjunction} ${words.at(-1)}`;
}

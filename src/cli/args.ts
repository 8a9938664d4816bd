/** Arguments of the commands. */
import { type ParseArgsConfig, parseArgs } from "node:util";

/** Wrong usage: exit code 2. */
export class UsageError extends Error {}

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values = Record<string, string | boolean | undefined>;

/** Parses the arguments of one command; every command has --help. */
export function parse(args: string[], options: Options): { values: Values; positionals: string[] } {
  try {
    const all: Options = { ...options, help: { type: "boolean", short: "h" } };
    const { values, positionals } = parseArgs({ args, options: all, allowPositionals: true, strict: true });
    return { values: values as Values, positionals };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // Node explains at length how to pass an argument that begins with a dash: keep its first sentence.
    throw new UsageError((text.split(/[.\n] ?(?=To specify|Did you)/)[0] ?? text).replace(/\.$/, ""));
  }
}

/** Checks the number of positional arguments against their names; a last name ending in "..." repeats. */
export function expectPositionals(positionals: readonly string[], ...names: string[]): void {
  const repeats = names.at(-1)?.endsWith("...");
  if (positionals.length < names.length) throw new UsageError(`missing ${names[positionals.length]}`);
  if (!repeats && positionals.length > names.length) {
    throw new UsageError(`unexpected argument '${positionals[names.length]}'`);
  }
}

/** The common part of the examples' command lines. */

/** An error in the arguments. */
export class UsageError extends Error {}

/**
 * Runs an example with the arguments of the command line. `--help` prints the usage. Prints errors, and sets the exit
 * code: 2 for wrong arguments, 1 for any other error.
 */
export function runExample(usage: string, main: (args: string[]) => Promise<void>): void {
  const args = process.argv.slice(2);
  if (args.includes("--help")) {
    process.stdout.write(usage);
    return;
  }
  main(args).catch((error: Error & { code?: unknown }) => {
    const isUsage = error instanceof UsageError || String(error.code).startsWith("ERR_PARSE_ARGS_");
    console.error(isUsage ? `${error.message}\n\n${usage}` : error.message);
    process.exitCode = isUsage ? 2 : 1;
  });
}

/** The model file that the arguments name. @throws UsageError unless there is exactly one */
export function onlyModel(positionals: readonly string[]): string {
  const [path] = positionals;
  if (path === undefined || positionals.length > 1) throw new UsageError("give the path of one model file");
  return path;
}

/** Parses `text` as a number. @throws UsageError unless it is a whole number, `least` or greater */
export function wholeNumber(option: string, text: string, least: number): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(value) || value < least) {
    throw new UsageError(`${option} must be a whole number of at least ${least}, not '${text}'`);
  }
  return value;
}

/** @throws UsageError unless `text` is one of `choices` */
export function oneOf<T extends string>(option: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((known) => known === text);
  if (choice === undefined) throw new UsageError(`${option} must be ${choices.join(" or ")}, not '${text}'`);
  return choice;
}

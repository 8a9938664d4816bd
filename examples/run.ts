/** What the examples' command lines share. */

/** What is wrong with the arguments. */
export class UsageError extends Error {}

/**
 * Runs an example with the command line's arguments; prints how it is used when asked to, and what is wrong where
 * something is: exit code 2 for the arguments, 1 for anything else.
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

/** The one model file that the arguments name. */
export function onlyModel(positionals: readonly string[]): string {
  const [path] = positionals;
  if (path === undefined || positionals.length > 1) throw new UsageError("name one model file");
  return path;
}

/** The number that `text` writes. @throws UsageError unless it is a whole one from `least` on */
export function wholeNumber(option: string, text: string, least: number): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(value) || value < least) {
    throw new UsageError(`${option} takes a whole number from ${least} on, not '${text}'`);
  }
  return value;
}

/** What a command is. */
import type { OptionTable } from "./arguments/parse";
import type { Terminal } from "./output/terminal";

/** A command of the command line, one per file of commands/. */
export interface Command {
  /** What `--help` prints. */
  readonly help: string;
  /** Its options, beside `--help`. */
  readonly options: OptionTable;
  /**
   * Runs the command on the arguments after its name.
   * @param all every command, for one that describes the others
   * @returns the exit code: 0, or 1 where the file is bad or `diff` found a difference
   * @throws UsageError for wrong arguments; any other error where the command cannot go on
   */
  run(args: readonly string[], terminal: Terminal, all: CommandList): Promise<number>;
}

/** Loads every command: its name, what it does in a few words, and the command. */
export type CommandList = () => Promise<readonly { name: string; summary: string; command: Command }[]>;

/** `gguf-native completion`: scripts for shells. */

import { didYouMean } from "../../base/suggest";
import { openSync } from "../../file/open";
import { namesAfterFile, optionFacts } from "../arguments/option-facts";
import { expectPositionals, parse, UsageError } from "../arguments/parse";
import type { Command, CommandList } from "../command";
import { completionScript, SHELLS, type Shell } from "../output/completion-scripts";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native completion bash|zsh|fish
       gguf-native completion tensors|keys FILE

Prints a script with which a shell completes commands, options and their values,
files, and the names of tensors and keys. The second form prints such names, a
line each, for these scripts; names that a shell would not take as they are are
left out.

Examples:
  eval "$(gguf-native completion bash)"            # in ~/.bashrc
  eval "$(gguf-native completion zsh)"             # in ~/.zshrc, after compinit
  gguf-native completion fish | source             # in config.fish
`;

const LISTS = ["tensors", "keys"] as const;

/** Names that are the same word to every shell, and no option. */
const PLAIN = /^\w[\w.+/-]*$/;

async function run(args: readonly string[], terminal: Terminal, all: CommandList): Promise<number> {
  const { positionals } = parse(args, {});
  const [what, path] = expectPositionals(positionals, "SHELL", "[FILE]");
  if ((LISTS as readonly string[]).includes(what)) {
    if (path === undefined) throw new UsageError("missing FILE");
    terminal.print(names(what as (typeof LISTS)[number], path));
    return 0;
  }
  if (!(SHELLS as readonly string[]).includes(what)) {
    throw new UsageError(`SHELL must be bash, zsh or fish, not '${what}'${didYouMean(what, SHELLS)}`);
  }
  if (path !== undefined) throw new UsageError(`unexpected argument '${path}'`);
  const commands = (await all()).map(({ name, summary, command }) => ({
    name,
    summary,
    options: optionFacts(command),
    words: name === "completion" ? SHELLS : undefined,
    names: namesAfterFile(command),
  }));
  terminal.printText(completionScript(what as Shell, commands));
  return 0;
}

export const command: Command = { help: HELP, options: {}, run };

function names(what: (typeof LISTS)[number], path: string): string[] {
  const file = openSync(path, { partial: true });
  try {
    const all = what === "tensors" ? file.tensors.keys() : file.metadata.keys();
    return Array.from(all).filter((name) => PLAIN.test(name));
  } finally {
    file.close();
  }
}

/** `gguf-native recover`: what a killed command left half done. */

import { escapeText } from "../../describe/text";
import { recover } from "../../index";
import { expectPositionals, parse } from "../arguments/parse";
import type { Command } from "../command";
import { recoveryLines } from "../output/recovery-text";
import type { Terminal } from "../output/terminal";

const HELP = `Usage: gguf-native recover FILE|FOLDER

Finishes or takes back what 'set --in-place', 'split' or 'merge' left half done
when it was killed. FILE is any file of the model, whether it is there or not.
With a FOLDER, it looks at all models there. Then it removes temporary files
that such commands left in the folder. 'set', 'split' and 'merge' do the same
before they change a model. Commands that only read do not; 'verify' says where
it is due.

What to do is in a file beside the model, gguf-native.<hash>.journal, which is
there only while a command changes the model.

Examples:
  gguf-native recover model.gguf
  gguf-native recover models/
`;

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { positionals } = parse(args, {});
  const [path] = expectPositionals(positionals, "FILE");
  const done = await recover(path);
  if (done.every(({ outcome }) => outcome === "removed"))
    terminal.print([`${escapeText(path)}: no change was interrupted`]);
  terminal.print(recoveryLines(path, done));
  return 0;
}

export const command: Command = { help: HELP, options: {}, run };

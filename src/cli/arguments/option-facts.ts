/** What is known of a command's options: from their table, and from its help, which describes them. */

import type { Command } from "../command";
import { HELP_OPTION, type Option } from "./parse";

/** An option of a command. */
export interface OptionFacts {
  readonly name: string;
  /** Its letter, if it has one. */
  readonly short: string | undefined;
  /** In a few words. */
  readonly description: string;
  /** What its value is called in the help; undefined where it takes none. */
  readonly value: string | undefined;
  /** The words that it takes; undefined where it takes others. */
  readonly choices: readonly string[] | undefined;
}

/** Where the help begins to describe an option, and where it goes on. */
const OPTION_LINE = /^ {2}(?:-\w, )?--([\w-]+)(?: ([A-Z][A-Z_:=]*))?(?: {2,}(\S.*))?$/;
const MORE_LINE = /^ {6,}(\S.*)$/;

/** The options of a command, --help last. */
export function optionFacts({ help, options }: Command): OptionFacts[] {
  const described = new Map<string, { value: string | undefined; text: string }>();
  let current: { value: string | undefined; text: string } | undefined;
  for (const line of help.split("\n")) {
    const [, name, value, text = ""] = OPTION_LINE.exec(line) ?? [];
    const [, more] = MORE_LINE.exec(line) ?? [];
    if (name !== undefined) {
      current = { value, text };
      described.set(name, current);
    } else if (current !== undefined && more !== undefined) {
      current.text = `${current.text} ${more}`.trim();
    } else {
      current = undefined;
    }
  }
  described.set("help", { value: undefined, text: "options and examples" });
  return Object.entries<Option>({ ...options, ...HELP_OPTION }).map(([name, option]) => {
    const { value, text = "" } = described.get(name) ?? {};
    return {
      name,
      short: option.short,
      description: fewWords(text),
      value: option.type === "string" ? (value ?? "VALUE") : undefined,
      choices: option.choices,
    };
  });
}

/** The first part of a description, as much as makes sense alone. */
function fewWords(text: string): string {
  return text.replace(/ \([^)]*\)/g, "").split(/[;:.](?= |$)|, such as/)[0] as string;
}

/** What a command takes after a file, by the first line of its help: names of tensors, keys, or neither. */
export function namesAfterFile({ help }: Command): "tensors" | "keys" | undefined {
  const [usage = ""] = help.split("\n");
  const [, what] = /FILE(?:\|URL)? \[?(TENSOR|KEY)\b/.exec(usage) ?? [];
  return what === "TENSOR" ? "tensors" : what === "KEY" ? "keys" : undefined;
}

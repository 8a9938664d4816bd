/** The code blocks of a Markdown page. */

export interface DocBlock {
  /** What the fence names: "js", "sh", ... */
  language: string;
  code: string;
  /** Where it begins, from 1. */
  line: number;
  /** Why it cannot be run, from a comment in the line above the fence: `<!-- not run: needs Docker -->`. */
  notRun: string | undefined;
}

const FENCE = /^( *)```(\w*)\n([\s\S]*?)^\1```$/gm;
const NOT_RUN = /<!-- not run: ([^\n]+) -->\n+ *$/;

export function docBlocks(page: string): DocBlock[] {
  return [...page.matchAll(FENCE)].map((match) => {
    const [, indent = "", language = "", code = ""] = match;
    const before = page.slice(0, match.index);
    return {
      language,
      code: code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      line: before.split("\n").length,
      notRun: NOT_RUN.exec(before)?.[1],
    };
  });
}

/**
 * What a block says that it prints: the comment after each `console.log(...);` that begins a line, indented or not. A
 * comment that is not meant as output goes on a line of its own.
 */
export function promisedLines(code: string): string[] {
  return [...code.matchAll(/^ *console\.log\(.*\); *\/\/ (.*)$/gm)].map(([, text = ""]) => text);
}

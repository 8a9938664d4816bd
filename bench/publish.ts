/** Writes the tables of a run to `bench/figures/MACHINE.md`, in the place of those with the same titles. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { benchFolder } from "./paths";
import type { Machine, Results } from "./results";
import { size, type Table } from "./table";

/** Returns the path. `note` is for what was special about the run. */
export function publish(
  { machine, date, tables }: Pick<Results, "machine" | "date" | "tables">,
  note: string,
  folder = join(benchFolder, "figures"),
): string {
  const path = join(folder, `${slug(machine)}.md`);
  const sections = new Map(existsSync(path) ? sectionsOf(readFileSync(path, "utf8")) : []);
  for (const table of tables) sections.set(table.title, markdown(table, `${date.slice(0, 10)}, ${note}`));
  const memory = size(2 ** 30 * Math.round(machine.memoryBytes / 2 ** 30));
  const intro = `# ${machine.processor}, ${machine.isa}

Written by \`npm run bench -- --publish\`. ${machine.cores} processors, ${memory} of memory; ${machine.system}; Node
${machine.node}. A column "×" says how many times as fast as the side before it the first one is. [How it is measured](../README.md)
`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, [intro, ...sections.values()].join("\n"));
  return path;
}

function slug({ processor, isa }: Machine): string {
  return `${processor} ${isa}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

/** The sections of a page by their titles. */
function sectionsOf(page: string): [title: string, text: string][] {
  return page
    .split(/^(?=## )/m)
    .slice(1)
    .map((text) => [text.slice(3, text.indexOf("\n")), `${text.trimEnd()}\n`]);
}

function markdown({ title, columns, rows }: Table, note: string): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = `|${columns.map((_, i) => (i === 0 ? "---" : "---:")).join("|")}|`;
  return `## ${title}\n\n${note}\n\n${[line(columns), rule, ...rows.map(line)].join("\n")}\n`;
}

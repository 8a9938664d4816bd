/** A report as Markdown, for pages such as a model card. */

import type { Group, ReportColumn, Section } from "./inspect-report";
import { truncate } from "./text-width";

/** Columns of text that a cell holds at most. */
const MAX_CELL = 120;

/** The lines of a page. */
export function* markdownLines(report: readonly Section[]): Lines {
  for (const [i, { title, facts, table, remarks = [] }] of report.entries()) {
    if (i > 0) yield "";
    yield `${i === 0 ? "#" : "##"} ${escapeMarkdown(title)}`;
    if (facts !== undefined) yield* tableLines(FACT_COLUMNS, facts);
    if (table !== undefined) yield* groupsLines(table);
    if (remarks.length > 0) yield "";
    for (const remark of remarks) yield `- ${escapeMarkdown(remark)}`;
  }
}

type Lines = Generator<string, void, undefined>;

const FACT_COLUMNS = [{ title: "" }, { title: "" }];

/** Rows without a title first: what has one is a part of its own. */
function* groupsLines({ columns, groups }: NonNullable<Section["table"]>): Lines {
  yield* tableLines(columns, untitledRows(groups));
  for (const { title, rows } of groups) {
    if (title === undefined) continue;
    yield* ["", `### ${escapeMarkdown(title)}`];
    yield* tableLines(columns, rows);
  }
}

function* untitledRows(groups: readonly Group[]): Generator<readonly string[], void, undefined> {
  for (const { title, rows } of groups) if (title === undefined) yield* rows;
}

/** A table after an empty line; nothing where there are no rows. */
function* tableLines(columns: readonly ReportColumn[], rows: Iterable<readonly string[]>): Lines {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  let isFirst = true;
  for (const row of rows) {
    if (isFirst) {
      yield "";
      yield line(columns.map(({ title }) => title));
      yield line(columns.map(({ align }) => (align === "right" ? "--:" : "---")));
      isFirst = false;
    }
    yield line(
      columns.map(({ isVerbatim }, i) => {
        const cell = truncate(row[i] ?? "", MAX_CELL);
        return isVerbatim ? code(cell) : escapeMarkdown(cell);
      }),
    );
  }
}

/** Text that stands for itself: no link, no emphasis, no HTML. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>|~&@]/g, (char) => (char === "<" ? "&lt;" : char === "&" ? "&amp;" : `\\${char}`));
}

/** Text as code, between more backticks than it has in a row. A bar would end the cell. */
function code(text: string): string {
  if (text === "") return "";
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  const space = text.startsWith("`") || text.endsWith("`") || /^ .*\S.* $/.test(text) ? " " : "";
  return `${fence}${space}${text.replaceAll("|", "\\|")}${space}${fence}`;
}

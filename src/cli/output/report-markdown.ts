/** A report as Markdown, for pages such as a model card. */
import type { Group, ReportColumn, Section } from "./inspect-report";
import { truncate } from "./text";

/** Columns of text that a cell holds at most. */
const MAX_CELL = 120;

/** The lines of a page. */
export function markdownLines(report: readonly Section[]): string[] {
  return report.flatMap(({ title, facts, table, remarks = [] }, i) => [
    ...(i === 0 ? [] : [""]),
    `${i === 0 ? "#" : "##"} ${escapeMarkdown(title)}`,
    ...(facts === undefined ? [] : ["", ...tableLines(FACT_COLUMNS, facts)]),
    ...(table === undefined ? [] : groupsLines(table)),
    ...(remarks.length === 0 ? [] : ["", ...remarks.map((remark) => `- ${escapeMarkdown(remark)}`)]),
  ]);
}

const FACT_COLUMNS = [{ title: "" }, { title: "" }];

/** Rows without a title first: what has one is a part of its own. */
function groupsLines({ columns, groups }: NonNullable<Section["table"]>): string[] {
  const rows = groups.flatMap((group) => (group.title === undefined ? group.rows : []));
  return [
    ...(rows.length === 0 ? [] : ["", ...tableLines(columns, rows)]),
    ...groups.flatMap((group) => groupLines(columns, group)),
  ];
}

function groupLines(columns: readonly ReportColumn[], { title, rows }: Group): string[] {
  if (title === undefined) return [];
  return ["", `### ${escapeMarkdown(title)}`, "", ...tableLines(columns, rows)];
}

function tableLines(columns: readonly ReportColumn[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [
    line(columns.map(({ title }) => title)),
    line(columns.map(({ align }) => (align === "right" ? "--:" : "---"))),
    ...rows.map((row) =>
      line(
        columns.map(({ isVerbatim }, i) => {
          const cell = truncate(row[i] ?? "", MAX_CELL);
          return isVerbatim ? code(cell) : escapeMarkdown(cell);
        }),
      ),
    ),
  ];
}

/** Text that stands for itself: no link, no emphasis, no HTML. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>|~&@]/g, (char) =>
    char === "<" ? "&lt;" : char === "&" ? "&amp;" : `\\${char}`,
  );
}

/** Text as code, between more backticks than it has in a row. A bar would end the cell. */
function code(text: string): string {
  if (text === "") return "";
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  const space = text.startsWith("`") || text.endsWith("`") || /^ .*\S.* $/.test(text) ? " " : "";
  return `${fence}${space}${text.replaceAll("|", "\\|")}${space}${fence}`;
}

/** A report in a terminal. */
import type { Section } from "./inspect-report";
import type { Terminal } from "./terminal";
import { type Row, wrap } from "./text";

/** The lines of a report. */
export function reportLines(report: readonly Section[], terminal: Terminal): string[] {
  return report.flatMap(({ title, facts, table, remarks = [] }, i) => [
    ...(i === 0 ? [] : [""]),
    ...wrap(title, terminal.width).map(terminal.heading),
    ...(facts === undefined ? [] : terminal.facts(facts)),
    ...(table === undefined ? [] : tableLines(table, terminal)),
    ...remarks.flatMap((remark) =>
      wrap(remark, terminal.width - 4).map((text, j) => `  ${j === 0 ? "-" : " "} ${text}`),
    ),
  ]);
}

function tableLines({ columns, groups }: NonNullable<Section["table"]>, terminal: Terminal): string[] {
  const rows = groups.flatMap((group): readonly Row[] =>
    group.title === undefined || group.isForPages
      ? group.rows
      : [group.title, ...group.rows.map(([first, ...rest]) => [`  ${first}`, ...rest])],
  );
  return rows.length === 0 ? [] : terminal.table(columns, rows, true);
}
